// Turns what a user passes into a call with a key. Finds everything wrong with the input before anything is claimed.

import { Call, type CallMaker, type CallParts, type Tool, unstoredMaker } from '../../call/index.ts';
import { toInstant } from '../../core/clock.ts';
import { encodeResult } from '../../core/codec/codec.ts';
import type { Contract } from '../../core/contract/contract.ts';
import type { FieldLists } from '../../core/contract/fields.ts';
import type { StandardSchema } from '../../core/contract/standard-schema.ts';
import { commandField, isRepeatable } from '../../core/contract/words.ts';
import { isSemelError, type SemelError } from '../../core/errors.ts';
import { digestContent, redactPaths } from '../../core/key/identity.ts';
import { compileIdentity, type IdentityText } from '../../core/key/identity-text.ts';
import { callerKey, fingerprint, keyDeriver } from '../../core/key/key.ts';
import { compileWording } from '../../core/key/wording.ts';
import { copyPlain } from '../../core/plain.ts';
import { checkText } from '../../core/text.ts';
import type { CallOptions } from '../definition.ts';
import { type CallIdentity, resolveIdentity } from './call-identity.ts';
import { compilePeriod, ever, type Period, type PeriodOf } from './periods.ts';
import { type Validated, validateArgs } from './validation.ts';

export interface CallLimits {
  readonly maxArgsBytes: number;
  readonly maxStoredArgsBytes: number;
  readonly maxDepth: number;
}

export interface CallSource {
  readonly namespace: string;
  readonly address: () => string | undefined;
  readonly limits: CallLimits;
  readonly permissions: readonly string[];
  readonly now: () => number;
  readonly warnOnce?: (message: string) => void;
}

export interface CallFactory {
  /**
   * Returns a promise only if the schema needs one. In observe mode a call that cannot have a key still runs, and its receipt
   * says what semel would have done.
   */
  make(
    tool: Tool,
    schema: StandardSchema | undefined,
    input: unknown,
    options: CallOptions,
  ): Call | Promise<Call>;
}

export function createCallFactory(source: CallSource): CallFactory {
  const compiled = new WeakMap<Contract, Compiled>();

  function compiledFor(contract: Contract): Compiled {
    let known = compiled.get(contract);
    if (known === undefined) {
      known = compile(source, contract);
      compiled.set(contract, known);
    }
    return known;
  }

  return {
    make(tool, schema, input, options) {
      const { contract } = tool;
      const { effect, mode } = contract;
      try {
        // The effect runs later, and must see the args that the key is made of.
        const given = effect === 'read' || mode !== 'enforce' ? input : copyPlain(input);
        const caller = resolveIdentity(source.permissions, contract, options);
        const maker = compiledFor(contract);
        if (schema === undefined) return keyedCall(maker, tool, given, noSchema, caller, options);
        const checking = validateArgs(schema, given, contract, source.warnOnce);
        if (!(checking instanceof Promise))
          return keyedCall(maker, tool, checking.args, checking.leftOut, caller, options);
        return keyedCallLater(source, maker, tool, schema, input, checking, caller, options);
      } catch (problem) {
        return keylessCall(source, tool, schema, input, options, problem);
      }
    },
  };
}

// Closures are made in functions of their own: otherwise every call would pay for the captured variables.

async function keyedCallLater(
  source: CallSource,
  maker: Compiled,
  tool: Tool,
  schema: StandardSchema,
  input: unknown,
  checking: Promise<Validated>,
  caller: CallIdentity,
  options: CallOptions,
): Promise<Call> {
  try {
    const { args, leftOut } = await checking;
    return keyedCall(maker, tool, args, leftOut, caller, options);
  } catch (problem) {
    return keylessCall(source, tool, schema, input, options, problem);
  }
}

/** Only observed calls run without a key. */
function keylessCall(
  source: CallSource,
  tool: Tool,
  schema: StandardSchema | undefined,
  input: unknown,
  options: CallOptions,
  problem: unknown,
): Promise<Call> {
  if (tool.contract.mode === 'enforce' || !isSemelError(problem)) throw problem;
  return observedCall(source, tool, schema, input, options, problem);
}

async function observedCall(
  { namespace, address }: CallSource,
  tool: Tool,
  schema: StandardSchema | undefined,
  input: unknown,
  options: CallOptions,
  problem: SemelError,
): Promise<Call> {
  const args = schema === undefined ? input : (await validateArgs(schema, input, tool.contract)).args;
  const unkeyed = { key: '', fingerprint: null, intent: '', periodEndsAt: null, again: null };
  const nobody = { identity: {}, notAfter: null, signal: options.signal };
  return new Call({ tool, namespace, args, ...unkeyed, ...nobody, problem }, { ...unstoredMaker, address });
}

/** A contract, compiled for the calls of one Semel instance. */
interface Compiled extends CallMaker {
  readonly source: CallSource;
  readonly own: Form;
  readonly earlier: readonly Form[];
}

interface Form {
  readonly name: string;
  readonly fields: FieldLists;
  readonly identityText: IdentityText;
  readonly periodOf: PeriodOf;
  readonly key: ReturnType<typeof keyDeriver>;
}

function compile(source: CallSource, contract: Contract): Compiled {
  const { namespace, address, limits, now } = source;
  const identityLimits = { maxDepth: limits.maxDepth, maxBytes: limits.maxArgsBytes };
  const formOf = ({ name, per, fields }: Pick<Contract, 'name' | 'per' | 'fields'>): Form => ({
    name,
    fields,
    identityText: compileIdentity(fields, contract.normalize, identityLimits),
    periodOf: compilePeriod(per, contract, now),
    key: keyDeriver(namespace, name),
  });
  const own = formOf(contract);
  const wording = compileWording(contract.fields, contract.redact);
  return {
    ...(wording === undefined ? {} : { wording }),
    source,
    own,
    earlier: contract.was.map(formOf),
    // A call without a period has the caller's own key, or needs none.
    deriveKey: ({ period, intent, again }) =>
      period === undefined ? '' : own.key(period, intent, again ?? undefined),
    content: ({ key, args }) => {
      const shown = withoutRedacted(args, contract);
      // A remembered effect has one wording; for a repeatable write, other content is another write.
      return digestContent(key, shown, contract.fields, isRepeatable(contract.effect) ? args : shown);
    },
    storedArgs: ({ args }) => encodeArgs(args, contract, limits),
    address,
  };
}

function keyedCall(
  maker: Compiled,
  tool: Tool,
  args: unknown,
  leftOut: Validated['leftOut'],
  caller: CallIdentity,
  options: CallOptions,
): Call {
  const { own } = maker;
  const { identity, at } = caller;
  const again = checkText('again', options.again);
  const ownKey = checkText('key', options.key);
  // A read is not recorded, so it needs no identity, and its args may be anything.
  const isRead = tool.contract.effect === 'read';
  const intent = isRead ? '' : own.identityText(args, leftOut.get(own.fields));
  const period = isRead || ownKey !== undefined ? undefined : own.periodOf(identity, at);
  const parts = {
    tool,
    namespace: maker.source.namespace,
    args,
    identity,
    intent,
    fingerprint: ownKey === undefined ? null : fingerprint(intent),
    periodEndsAt: period === undefined ? null : period.endsAt,
    again: again ?? null,
    notAfter: toInstant('notAfter', options.notAfter) ?? null,
    signal: options.signal,
    period,
    exact: period && exactText(period, intent, again),
    inTurn:
      identity.toolCallId === undefined
        ? undefined
        : rekeyForTurn(maker, tool, args, leftOut, caller, options),
  };
  if (isRead || (period !== undefined && maker.earlier.length === 0)) return new Call(parts, maker);
  return callWithAllKeys(maker, parts, leftOut, at, ownKey);
}

function rekeyForTurn(
  maker: Compiled,
  tool: Tool,
  args: unknown,
  leftOut: Validated['leftOut'],
  { identity, at }: CallIdentity,
  options: CallOptions,
): (turn: string) => Call {
  return (turn) => keyedCall(maker, tool, args, leftOut, { identity: { ...identity, turn }, at }, options);
}

/** For a caller's own key, and for contracts with earlier forms. */
function callWithAllKeys(
  maker: Compiled,
  parts: CallParts,
  leftOut: Validated['leftOut'],
  at: number | undefined,
  ownKey: string | undefined,
): Call {
  const { args, identity } = parts;
  const again = parts.again ?? undefined;
  let { periodEndsAt } = parts;
  const keyIn = (form: Form): string => {
    if (ownKey !== undefined) return callerKey(form.name, ownKey, again);
    const period = form.periodOf(identity, at);
    periodEndsAt ??= period.endsAt;
    return form.key(period, form.identityText(args, leftOut.get(form.fields)), again);
  };
  const key = keyIn(maker.own);
  const olderKeys = maker.earlier.map(keyIn).filter((each) => each !== key);
  return new Call({ ...parts, key, olderKeys, periodEndsAt }, maker);
}

/**
 * Everything the key is derived from, except what all calls of the contract share. Each part is JSON, so different parts
 * never make the same text.
 */
function exactText({ exact }: Period, intent: string, again: string | undefined): string {
  const whole = exact === ever.exact ? intent : exact + intent;
  return again === undefined ? whole : JSON.stringify(again) + whole;
}

const noSchema: Validated['leftOut'] = new Map();

/** Null if the args are too large or not data: then only the caller can run the call again. */
function encodeArgs(args: unknown, contract: Contract, { maxStoredArgsBytes }: CallLimits): string | null {
  const encoded = encodeResult(withoutCommand(withoutRedacted(args, contract), contract), {
    maxBytes: maxStoredArgsBytes,
  });
  return encoded.ok ? encoded.text : null;
}

function withoutCommand(args: unknown, { fields }: Contract): unknown {
  if (!fields.content.includes(commandField)) return args;
  const { [commandField]: _, ...given } = args as Readonly<Record<string, unknown>>;
  return given;
}

/** Not even a digest is stored: a guessable value could be found by trying. */
function withoutRedacted(args: unknown, { redact }: Contract): unknown {
  return redact.length === 0 ? args : redactPaths(args, redact);
}
