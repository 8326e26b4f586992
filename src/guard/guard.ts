// A call that a framework makes of its tool goes through the ledger. What the framework knows of the call is passed in;
// what it does to run the tool is passed in too, and runs at most once.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { AttemptContext } from '../call/index.ts';
import { causesOf } from '../core/contract/classify.ts';
import type { Per } from '../core/contract/period.ts';
import { type ErrorValue, SemelError } from '../core/errors.ts';
import { shortDigest } from '../core/key/key.ts';
import type { Receipt } from '../core/receipt.ts';
import { NotLanded } from '../core/signals.ts';
import {
  type Ambient,
  ambient,
  type CallOptions,
  forgetTool,
  type Semel,
  type ToolFunction,
  warningOf,
} from '../semel/index.ts';
import type { Guess } from './guess.ts';
import { type AnyPolicy, refuseKeys, refuseStrangers, termsOf } from './policy.ts';
import { isOfProgram, lineFor, toldError, unrecordedLine } from './told.ts';

/** What a framework knows of one call of a tool. */
export interface Asked {
  readonly args: unknown;
  readonly toolCallId?: string | undefined;
  /** The caller's own key, scoped to the caller. */
  readonly key?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Who asks, where the program did not say: the framework's own ids, or a guess that is marked as weak. */
  readonly identity?: () => Guess;
}

/** For the code: `value`, as it was at first. For the model: the line beside it, or the error. */
export type Answer =
  | {
      readonly ok: true;
      readonly value: unknown;
      readonly line: string | undefined;
      readonly receipt?: Receipt;
    }
  | { readonly ok: false; readonly error: ErrorValue; readonly receipt?: Receipt };

/** How the framework runs the tool itself. */
export type Execute = (args: unknown, ctx: AttemptContext) => unknown;

export interface Guard {
  readonly name: string;
  /** False: the tool itself says when it crosses the line. */
  readonly crossesAtClaim: boolean;
  /** To the program, once: what a tool answers is read by a model alone. */
  warn(message: string): void;
  /** Throws what `passes` lets through, and nothing else. */
  call(asked: Asked, execute: Execute): Promise<Answer>;
  /** The key of the record that such a call would have. Throws where it can have none. */
  keyOf(asked: Asked): Promise<string>;
  /** It is not called any more: its name is free, for this tool or another one. */
  forget(): void;
}

export interface GuardOptions {
  /** Control flow of the framework (a suspension, an interrupt) is no failure: the claim is given back, and it passes. */
  readonly passes?: (error: unknown) => boolean;
  /** What the model sees of the tool: there must be no key in it. */
  readonly schema?: unknown;
  readonly description?: unknown;
}

interface Running {
  readonly execute: Execute;
  readonly ctx: AttemptContext | undefined;
}

const running = new AsyncLocalStorage<Running>();

/** The attempt whose tool is running now: its key for the provider, its fetch, its signal. */
export function currentAttempt(): AttemptContext | undefined {
  return running.getStore()?.ctx;
}

/** Undefined: a read runs freely, and needs no guard. */
export function guardOf(
  semel: Semel,
  name: string,
  policy: AnyPolicy | undefined,
  { passes = never, schema, description }: GuardOptions = {},
): Guard | undefined {
  checkSemel(semel);
  const { definition, byCall } = termsOf(name, policy);
  if (definition.effect === 'read') return undefined;
  refuseKeys(name, schema, description);
  refuseStrangers(name, policy, schema);
  const run = (args: unknown, ctx: AttemptContext) => {
    const execute = running.getStore()?.execute;
    if (execute === undefined) throw new NotLanded('Only its framework can run it.');
    return running.run({ execute, ctx }, async () => {
      try {
        return await execute(args, ctx);
      } catch (error) {
        throw passes(error) ? new Suspended(error) : error;
      }
    });
  };
  const tool = semel.tool({ ...definition, run } as never) as ToolFunction<unknown, unknown>;
  return {
    name: definition.name,
    crossesAtClaim: tool.contract.dispatch === 'claim',
    warn: (message) => warningOf(tool)?.(message),
    keyOf: (asked) => keyOfCall(semel, tool, asked, byCall),
    forget: () => forgetTool(tool),
    async call(asked, execute) {
      for (;;) {
        let isOwn = false;
        const own: Execute = (args, ctx) => {
          isOwn = true;
          return execute(args, ctx);
        };
        try {
          return await running.run({ execute: own, ctx: undefined }, () =>
            callOf(semel, tool, asked, byCall),
          );
        } catch (error) {
          // Another call of the same intent was suspended, and its framework resumes that one: this one asks for itself.
          if (isOwn || !passes(error)) throw error;
        }
      }
    },
  };
}

/** Programs without types swap arguments, or forget one. */
function checkSemel(semel: unknown): void {
  if (typeof (semel as Partial<Semel> | null | undefined)?.tool === 'function') return;
  throw new SemelError('CONTRACT_INVALID', 'The first argument of the guard is no semel.', {
    path: 'semel',
    next: 'Pass what `createSemel()` gave.',
  });
}

/** A tool that `semel.tool` made runs itself. */
export function guardOfTool(semel: Semel, tool: ToolFunction<never, unknown>): Guard {
  checkSemel(semel);
  const { contract, input, description } = tool;
  refuseKeys(contract.name, input, description);
  const own = tool as ToolFunction<unknown, unknown>;
  return {
    name: contract.name,
    crossesAtClaim: contract.dispatch === 'claim',
    warn: (message) => warningOf(own)?.(message),
    keyOf: (asked) => keyOfCall(semel, own, asked, false),
    forget: () => forgetTool(own),
    call: (asked) => callOf(semel, own, asked, false),
  };
}

export function isSemelTool(tool: unknown): tool is ToolFunction<never, unknown> {
  return typeof tool === 'function' && 'contract' in tool && 'try' in tool;
}

function optionsOf({ toolCallId, key, signal }: Asked, byCall: boolean): CallOptions {
  return {
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(signal === undefined ? {} : { signal }),
    ...(key === undefined ? {} : { key }),
    ...(byCall && toolCallId !== undefined ? { again: `call ${toolCallId}` } : {}),
  };
}

/** As the asker, or as the framework's guess of it. */
function asAsker<T>(
  semel: Semel,
  tool: ToolFunction<unknown, unknown>,
  { identity }: Asked,
  work: () => T,
): T {
  const known = identity === undefined ? undefined : unsaid(tool.contract.per, identity);
  return known === undefined ? work() : semel.within(known, work);
}

async function keyOfCall(
  semel: Semel,
  tool: ToolFunction<unknown, unknown>,
  asked: Asked,
  byCall: boolean,
): Promise<string> {
  const work = () => semel.keyOf(tool, asked.args, optionsOf(asked, byCall));
  return (await asAsker(semel, tool, asked, work)).key;
}

async function callOf(
  semel: Semel,
  tool: ToolFunction<unknown, unknown>,
  asked: Asked,
  byCall: boolean,
): Promise<Answer> {
  if (byCall && asked.toolCallId === undefined)
    warningOf(tool)?.(
      `${tool.contract.name}: \`repeat: 'by-call'\` has no effect, because its calls come without a tool call id: ` +
        'equal calls of one turn count as one.',
    );
  const work = () => tool.try(asked.args, optionsOf(asked, byCall));
  const result = await asAsker(semel, tool, asked, work);
  const { receipt } = result;
  if (result.ok) return { ok: true, value: result.value, line: lineFor(receipt), receipt };
  const suspended = suspendedIn(result.error);
  if (suspended !== undefined) throw suspended.cause;
  // It is done: only the ledger could not be told. Nobody may do it again for that.
  if (result.error.code === 'UNRECORDED')
    return { ok: true, value: result.error.value, line: unrecordedLine, receipt };
  // The model can do nothing about it, and the program is not told otherwise.
  if (isOfProgram(result.error)) {
    const { name } = tool.contract;
    const { message } = result.error;
    warningOf(tool)?.(message.startsWith(name) ? message : `${name}: ${message}`);
  }
  return { ok: false, error: toldError(result.error, receipt), receipt };
}

/** What the program has said stands; a framework is asked only for what the period needs and nobody said. */
function unsaid(per: Per, identity: () => Guess): Ambient | undefined {
  if (per !== 'turn' && per !== 'conversation') return undefined;
  const said = ambient();
  if (said.conversation !== undefined && (said.turn !== undefined || per === 'conversation'))
    return undefined;
  const { conversation, turn: known, weak, origin } = identity();
  // A guess never crosses callers: where one is named, the words are those of that caller.
  const isMixed = weak === true && known !== undefined && said.caller !== undefined;
  const turn = isMixed ? shortDigest('turn', said.caller as string, known) : known;
  // A turn that is known belongs to no conversation that is guessed: another one may count its turns the same way.
  if (said.conversation === undefined && said.turn !== undefined)
    return weak === true || conversation === undefined ? undefined : { conversation, turn: said.turn };
  // A guessed turn is of no conversation that has a name; where the turn bounds nothing, strangers would meet in it.
  const bounding = conversation ?? (per === 'turn' && turn !== undefined ? 'guessed' : undefined);
  const isAnybodys = bounding === 'guessed' && said.conversation === undefined && said.caller === undefined;
  return {
    ...(said.conversation === undefined && bounding !== undefined ? { conversation: bounding } : {}),
    // Nothing tells two users apart who begin with the same words: what one of them did is not given to the other.
    ...(isAnybodys && origin !== undefined ? { caller: `guessed ${origin}` } : {}),
    ...(said.turn === undefined
      ? { ...(turn === undefined ? {} : { turn }), ...(weak === true ? { weak } : {}) }
      : {}),
  };
}

class Suspended extends NotLanded {
  constructor(cause: unknown) {
    super('It was suspended by its framework.', { cause });
  }
}

function suspendedIn(error: unknown): Suspended | undefined {
  return causesOf(error).find((each) => each instanceof Suspended);
}

const never = () => false;
