// From what a user passed to a call with a key. Everything that can be wrong with the input is found here,
// before anything is claimed.

import { Call, type CallMaker, type CallParts, type Tool, unstoredMaker } from '../../call/index.ts';
import { toInstant } from '../../core/clock.ts';
import { encodeResult } from '../../core/codec/codec.ts';
import type { Contract, FieldLists } from '../../core/contract/contract.ts';
import type { StandardSchema } from '../../core/contract/standard-schema.ts';
import { isSemelError, type SemelError } from '../../core/errors.ts';
import { digestContent, redactPaths } from '../../core/key/identity.ts';
import { compileIdentity, type IdentityText } from '../../core/key/identity-text.ts';
import { callerKey, fingerprint, keyDeriver } from '../../core/key/key.ts';
import { compileWording } from '../../core/key/wording.ts';
import { copyPlain } from '../../core/plain.ts';
import { checkText } from '../../core/text.ts';
import type { CallOptions } from '../definition.ts';
import { type Asker, askerOf } from './asker.ts';
import { ever, type Period, type PeriodOf, periodsOf } from './periods.ts';
import { type Validated, validated } from './validation.ts';

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

/** The calls of one semel, made of what its users pass. */
export interface Calls {
  /**
   * A promise only where the schema needs one. In observe mode a call that cannot have a key runs as before, and the
   * receipt says what would have been.
   */
  make(
    tool: Tool,
    schema: StandardSchema | undefined,
    input: unknown,
    options: CallOptions,
  ): Call | Promise<Call>;
}

export function createCalls(source: CallSource): Calls {
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
        // The key is taken now and the effect runs later: both must be of the same args.
        const given = effect === 'read' || mode === 'observe' ? input : copyPlain(input);
        const asker = askerOf(source.permissions, contract, options);
        const maker = compiledFor(contract);
        if (schema === undefined) return keyedCall(maker, tool, given, noSchema, asker, options);
        const checking = validated(schema, given, contract, source.warnOnce);
        if (!(checking instanceof Promise))
          return keyedCall(maker, tool, checking.args, checking.leftOut, asker, options);
        return keyedLater(source, maker, tool, schema, input, checking, asker, options);
      } catch (problem) {
        return keylessCall(source, tool, schema, input, options, problem);
      }
    },
  };
}

// Closures have functions of their own here: where one is made, every call pays for what it captures.

async function keyedLater(
  source: CallSource,
  maker: Compiled,
  tool: Tool,
  schema: StandardSchema,
  input: unknown,
  checking: Promise<Validated>,
  asker: Asker,
  options: CallOptions,
): Promise<Call> {
  try {
    const { args, leftOut } = await checking;
    return keyedCall(maker, tool, args, leftOut, asker, options);
  } catch (problem) {
    return keylessCall(source, tool, schema, input, options, problem);
  }
}

/** Only what is observed runs without a key. */
function keylessCall(
  source: CallSource,
  tool: Tool,
  schema: StandardSchema | undefined,
  input: unknown,
  options: CallOptions,
  problem: unknown,
): Promise<Call> {
  if (tool.contract.mode !== 'observe' || !isSemelError(problem)) throw problem;
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
  const args = schema === undefined ? input : (await validated(schema, input, tool.contract)).args;
  const unkeyed = { key: '', fingerprint: null, intent: '', periodEndsAt: null, again: null };
  const nobody = { identity: {}, notAfter: null, signal: options.signal };
  return new Call({ tool, namespace, args, ...unkeyed, ...nobody, problem }, { ...unstoredMaker, address });
}

/** A contract as the calls of one semel need it. */
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
    periodOf: periodsOf(per, contract, now),
    key: keyDeriver(namespace, name),
  });
  const own = formOf(contract);
  const wording = compileWording(contract.fields, contract.redact);
  return {
    ...(wording === undefined ? {} : { wording }),
    source,
    own,
    earlier: contract.was.map(formOf),
    // A call without a period has its caller's own key, or needs none.
    deriveKey: ({ period, intent, again }) =>
      period === undefined ? '' : own.key(period, intent, again ?? undefined),
    content: ({ key, args }) => digestContent(key, withoutRedacted(args, contract), contract.fields),
    storedArgs: ({ args }) => storedArgs(args, contract, limits),
    address,
  };
}

function keyedCall(
  maker: Compiled,
  tool: Tool,
  args: unknown,
  leftOut: Validated['leftOut'],
  asker: Asker,
  options: CallOptions,
): Call {
  const { own } = maker;
  const { identity, at } = asker;
  const again = checkText('again', options.again);
  const ownKey = checkText('key', options.key);
  // Nothing is remembered of a read, so it needs no identity, and may take args that could give none.
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
    exact: period && exactly(period, intent, again),
    inTurn:
      identity.toolCallId === undefined
        ? undefined
        : inOtherTurns(maker, tool, args, leftOut, asker, options),
  };
  if (isRead || (period !== undefined && maker.earlier.length === 0)) return new Call(parts, maker);
  return withAllKeys(maker, parts, leftOut, at, ownKey);
}

function inOtherTurns(
  maker: Compiled,
  tool: Tool,
  args: unknown,
  leftOut: Validated['leftOut'],
  { identity, at }: Asker,
  options: CallOptions,
): (turn: string) => Call {
  return (turn) => keyedCall(maker, tool, args, leftOut, { identity: { ...identity, turn }, at }, options);
}

/** For a caller's own key, and for contracts with earlier forms. */
function withAllKeys(
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
 * All that the key is derived from, except what the maker's calls share. Each part is JSON, so that no two lists of them
 * meet in one text.
 */
function exactly({ exact }: Period, intent: string, again: string | undefined): string {
  const whole = exact === ever.exact ? intent : exact + intent;
  return again === undefined ? whole : JSON.stringify(again) + whole;
}

const noSchema: Validated['leftOut'] = new Map();

/** Args that are too large or no data stay with the caller; then nobody else can run the call again. */
function storedArgs(args: unknown, contract: Contract, { maxStoredArgsBytes }: CallLimits): string | null {
  const encoded = encodeResult(withoutRedacted(args, contract), {
    maxBytes: maxStoredArgsBytes,
  });
  return encoded.ok ? encoded.text : null;
}

/** Neither they nor a digest of them is stored: a value that can be guessed is found by trying. */
function withoutRedacted(args: unknown, { redact }: Contract): unknown {
  return redact.length === 0 ? args : redactPaths(args, redact);
}
