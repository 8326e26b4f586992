// Sends a framework's tool call through the ledger. The adapter says what the framework knows about the call and how to
// run the tool; the tool runs at most once.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { AttemptContext } from '../call/index.ts';
import { listCauses } from '../core/contract/classify.ts';
import type { ContractPer } from '../core/contract/period.ts';
import { type ErrorValue, isSemelError, SemelError } from '../core/errors.ts';
import { digest, shortDigest } from '../core/key/key.ts';
import type { Receipt } from '../core/receipt.ts';
import { NotLanded } from '../core/signals.ts';
import {
  type Ambient,
  ambient,
  type CallOptions,
  type CloneTool,
  clonerOf,
  forgetTool,
  markExternal,
  type Semel,
  setCloner,
  type ToolFunction,
  warnerOf,
} from '../semel/index.ts';
import type { Guess } from './guess.ts';
import { errorForModel, isProgramError, noteForModel, unrecordedNote } from './model-text.ts';
import { type AnyPolicy, readPolicy, refuseKeyFields, refuseUnknownFields } from './policy.ts';

/** What a framework knows about one tool call. */
export interface FrameworkCall {
  readonly args: unknown;
  readonly toolCallId?: string | undefined;
  /** The caller's own key, scoped to the caller. */
  readonly key?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Used where the program named no conversation or turn: the framework's own ids, or a guess marked `weak`. */
  readonly identity?: () => Guess | Promise<Guess>;
}

/** `value` is for the code, as it was returned the first time. `note` and `error` are for the model. */
export type Answer =
  | {
      readonly ok: true;
      readonly value: unknown;
      readonly note: string | undefined;
      readonly receipt?: Receipt;
    }
  | { readonly ok: false; readonly error: ErrorValue; readonly receipt?: Receipt };

/** How the framework runs the tool itself. */
export type Execute = (args: unknown, ctx: AttemptContext) => unknown;

export interface Guard {
  readonly name: string;
  /** False: the tool itself calls `ctx.dispatch()`. */
  readonly dispatchesAtClaim: boolean;
  /** Warns the program, once: only the model reads what a tool answers. */
  warn(message: string): void;
  /** Throws only errors for which `isControlFlow` is true. */
  call(call: FrameworkCall, execute: Execute): Promise<Answer>;
  /** The key that the call's record would have. Throws if it cannot have one. */
  keyOf(call: FrameworkCall): Promise<string>;
  /** Frees the tool's name. Calls that have begun go on. */
  forget(): void;
  /** Lets `landsOnce` test what the adapter returns: `execute` runs the framework's tool without a call of the framework. */
  makeTestable<Guarded extends object>(guarded: Guarded, execute: Execute): Guarded;
}

export interface GuardOptions {
  /** Errors that the framework uses as control flow (a suspension, an interrupt): the claim is released and they are rethrown. */
  readonly isControlFlow?: (error: unknown) => boolean;
  /** What the model sees of the tool. It must not contain a key. */
  readonly schema?: unknown;
  readonly description?: unknown;
}

interface Running {
  readonly execute: Execute;
  readonly ctx: AttemptContext | undefined;
}

const running = new AsyncLocalStorage<Running | undefined>();

/** The attempt whose tool is running now: its key for the provider, its fetch, its signal. */
export function currentAttempt(): AttemptContext | undefined {
  return running.getStore()?.ctx;
}

/** Undefined for a read, which runs unguarded. */
export function createGuard(
  semel: Semel,
  name: string,
  policy: AnyPolicy | undefined,
  { isControlFlow = () => false, schema, description }: GuardOptions = {},
): Guard | undefined {
  checkSemel(semel);
  const { definition, byCall } = readPolicy(name, policy);
  if (definition.effect === 'read') return undefined;
  refuseKeyFields(name, schema, description);
  refuseUnknownFields(name, policy, schema);
  const run = (args: unknown, ctx: AttemptContext) => {
    const execute = running.getStore()?.execute;
    if (execute === undefined) throw new NotLanded('Only its framework can run it.');
    return running.run({ execute, ctx }, async () => {
      try {
        return await execute(args, ctx);
      } catch (error) {
        throw isControlFlow(error) ? new Suspended(error) : error;
      }
    });
  };
  const tool = semel.tool({ ...definition, run } as never) as ToolFunction<unknown, unknown>;
  // A sweep has no framework call; inside another tool's run it would pick up that tool's.
  markExternal(tool);
  return guardTool(semel, tool, byCall, async (call, execute) => {
    for (;;) {
      let isOwn = false;
      const own: Execute = (args, ctx) => {
        isOwn = true;
        return execute(args, ctx);
      };
      try {
        return await running.run({ execute: own, ctx: undefined }, () => callTool(semel, tool, call, byCall));
      } catch (error) {
        // An equal call was suspended, and its framework resumes that one. This call has to be suspended itself.
        if (isOwn || !isControlFlow(error)) throw error;
      }
    }
  });
}

/** A tool that `semel.tool` made runs itself. */
export function guardSemelTool(semel: Semel, made: ToolFunction<never, unknown>): Guard {
  checkSemel(semel);
  refuseKeyFields(made.contract.name, made.input, made.description);
  const tool = made as ToolFunction<unknown, unknown>;
  // Its own `ctx` has its key: that of a tool whose run made this call would be the same for every call.
  const apart: Guard['call'] = (call) => running.run(undefined, () => callTool(semel, tool, call, false));
  return guardTool(semel, tool, false, apart);
}

export function isSemelTool(tool: unknown): tool is ToolFunction<never, unknown> {
  return typeof tool === 'function' && 'contract' in tool && 'try' in tool;
}

/** Catches swapped or missing arguments in programs without types. */
function checkSemel(semel: unknown): void {
  if (typeof (semel as Partial<Semel> | null | undefined)?.tool === 'function') return;
  throw new SemelError('CONTRACT_INVALID', 'guard() expects a Semel instance first.', {
    path: 'semel',
    next: 'Pass what `createSemel()` returned.',
  });
}

function guardTool(
  semel: Semel,
  tool: ToolFunction<unknown, unknown>,
  byCall: boolean,
  call: Guard['call'],
): Guard {
  const { name, dispatch } = tool.contract;
  return {
    name,
    dispatchesAtClaim: dispatch === 'claim',
    warn: (message) => warnerOf(tool)?.(message),
    forget: () => forgetTool(tool),
    call,
    makeTestable(guarded, execute) {
      setCloner(guarded, cloneWith(tool, execute));
      return guarded;
    },
    async keyOf(asked) {
      const derive = () => semel.keyOf(tool, asked.args, callOptions(asked, byCall));
      return (await withIdentity(semel, tool, asked, derive)).key;
    },
  };
}

/** Clones whose `run` finds what to execute, although no framework calls them. */
function cloneWith(tool: ToolFunction<unknown, unknown>, execute: Execute): CloneTool {
  const clone = clonerOf(tool) as CloneTool;
  return (change) =>
    clone({
      ...change,
      definition(given) {
        const run = (args: never, ctx: never) =>
          running.run({ execute, ctx: undefined }, () => given.run(args, ctx));
        const definition = { ...given, run } as typeof given;
        return change.definition?.(definition) ?? definition;
      },
    });
}

function callOptions({ toolCallId: given, key, signal }: FrameworkCall, byCall: boolean): CallOptions {
  const toolCallId = toCallId(given);
  return {
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(signal === undefined ? {} : { signal }),
    ...(key === undefined ? {} : { key }),
    ...(byCall && toolCallId !== undefined ? { again: `call ${toolCallId}` } : {}),
  };
}

/**
 * The provider chooses the id, and neither the model nor the program can correct it: some send none, others put kilobytes of state into
 * it. A long one keeps its beginning, which may name the tool, and gets a digest of the whole.
 */
function toCallId(given: string | undefined): string | undefined {
  const id = given?.toWellFormed();
  if (id === undefined || id.trim() === '') return undefined;
  return id.length > maxCallId ? `${id.slice(0, maxCallId).toWellFormed()}~${digest(id)}` : id;
}

const maxCallId = 200;

async function withIdentity<T>(
  semel: Semel,
  tool: ToolFunction<unknown, unknown>,
  { identity }: FrameworkCall,
  work: () => T | Promise<T>,
): Promise<T> {
  const missing = identity && (await missingIdentity(tool.contract.per, identity));
  return missing === undefined ? work() : semel.within(missing, work);
}

async function callTool(
  semel: Semel,
  tool: ToolFunction<unknown, unknown>,
  call: FrameworkCall,
  byCall: boolean,
): Promise<Answer> {
  if (byCall && toCallId(call.toolCallId) === undefined)
    warnerOf(tool)?.(
      `${tool.contract.name}: \`repeat: 'by-call'\` has no effect, because its calls come without a tool call id: ` +
        'equal calls of one turn count as one.',
    );
  const run = () => tool.try(call.args, callOptions(call, byCall));
  const result = await withIdentity(semel, tool, call, run).catch((error: unknown) => {
    if (!isSemelError(error)) throw error;
    return error;
  });
  // Nothing ran: whose call it is could not be found out.
  if (isSemelError(result)) {
    tellProgram(tool, result);
    return { ok: false, error: errorForModel(result) };
  }
  const { receipt } = result;
  if (result.ok) return { ok: true, value: result.value, note: noteForModel(receipt), receipt };
  const suspended = listCauses(result.error).find((each) => each instanceof Suspended);
  if (suspended !== undefined) throw suspended.cause;
  // It is done and only the ledger does not know: an error would make the model do it again.
  if (result.error.code === 'UNRECORDED')
    return { ok: true, value: result.error.value, note: unrecordedNote, receipt };
  tellProgram(tool, result.error);
  return { ok: false, error: errorForModel(result.error, receipt), receipt };
}

/** The model cannot correct it, and the program has no other way to learn of it. */
function tellProgram(tool: ToolFunction<unknown, unknown>, error: SemelError): void {
  if (!isProgramError(error)) return;
  const { name } = tool.contract;
  const { message } = error;
  warnerOf(tool)?.(message.startsWith(name) ? message : `${name}: ${message}`);
}

/** What the period needs and the program did not say. What the program said always wins over the framework. */
async function missingIdentity(
  per: ContractPer,
  identity: () => Guess | Promise<Guess>,
): Promise<Ambient | undefined> {
  if (per !== 'turn' && per !== 'conversation') return undefined;
  const said = ambient();
  if (said.conversation !== undefined && (said.turn !== undefined || per === 'conversation'))
    return undefined;
  const { conversation, turn: known, weak, origin } = await identity();
  // A guess never crosses callers: a named caller's words are only that caller's.
  const isMixed = weak === true && known !== undefined && said.caller !== undefined;
  const turn = isMixed ? shortDigest('turn', said.caller as string, known) : known;
  // A known turn is not put into a guessed conversation: another conversation may number its turns the same way.
  if (said.conversation === undefined && said.turn !== undefined)
    return weak === true || conversation === undefined ? undefined : { conversation, turn: said.turn };
  // A guessed turn has no named conversation. Where the turn bounds nothing, strangers would share one, so there is none.
  const bounding = conversation ?? (per === 'turn' && turn !== undefined ? 'guessed' : undefined);
  const isAnybodys = bounding === 'guessed' && said.conversation === undefined && said.caller === undefined;
  return {
    ...(said.conversation === undefined && bounding !== undefined ? { conversation: bounding } : {}),
    // Two users may begin with the same words: neither gets the other's result.
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
