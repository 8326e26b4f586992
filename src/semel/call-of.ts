// From what a user passed to a call with a key. Everything that can be wrong with the input is found here,
// before anything is claimed.

import type { Call, Identity, Tool } from '../call/index.ts';
import { instantOf } from '../core/clock.ts';
import { encodeResult } from '../core/codec.ts';
import { type Contract, type FieldLists, majorOf } from '../core/contract.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { contentOf, identityOf, redacted } from '../core/identity.ts';
import { callerKey, deriveKey, fingerprint, type PeriodPart, shortDigest } from '../core/key.ts';
import { checkMeant, fieldsOf } from '../core/known-fields.ts';
import { calendarSlot, type Per } from '../core/period.ts';
import { copyPlain, kindOf } from '../core/plain.ts';
import type { StandardSchema } from '../core/standard-schema.ts';
import { text } from '../core/text.ts';
import { ambient, callerIn } from './ambient.ts';
import type { CallOptions } from './definition.ts';
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

/**
 * A promise only where the schema needs one. In observe mode a call that cannot have a key runs as before, and the
 * receipt says what would have been.
 */
export function callOf(
  source: CallSource,
  tool: Tool,
  schema: StandardSchema | undefined,
  input: unknown,
  options: CallOptions,
): Call | Promise<Call> {
  const { effect, mode } = tool.contract;
  const keyless = (problem: unknown) => {
    if (mode !== 'observe' || !isSemelError(problem)) throw problem;
    return keylessCall(source, tool, schema, input, options, problem);
  };
  try {
    // The key is taken now and the effect runs later: both must be of the same args.
    const given = effect === 'read' || mode === 'observe' ? input : copyPlain(input);
    const asker = askerOf(source, tool.contract, options);
    if (schema === undefined) return keyedCall(source, tool, given, noSchema, asker, options);
    return validated(schema, given, tool.contract, source.warnOnce)
      .then(({ args, leftOut }) => keyedCall(source, tool, args, leftOut, asker, options))
      .catch(keyless);
  } catch (problem) {
    return keyless(problem);
  }
}

async function keylessCall(
  { namespace, address }: CallSource,
  tool: Tool,
  schema: StandardSchema | undefined,
  input: unknown,
  options: CallOptions,
  problem: SemelError,
): Promise<Call> {
  const args = schema === undefined ? input : (await validated(schema, input, tool.contract)).args;
  const unkeyed = {
    key: '',
    olderKeys: [],
    fingerprint: null,
    caller: null,
    share: false,
    intent: '',
    content: nothing,
    storedArgs: nothing,
  };
  const nobody = { identity: {}, periodEndsAt: null, again: null, notAfter: null };
  return {
    tool,
    namespace,
    address,
    args,
    ...unkeyed,
    ...nobody,
    signal: options.signal,
    generation: null,
    problem,
  };
}

interface Asker {
  readonly identity: Identity;
  /** The instant that calendar periods are taken from. */
  readonly at: number;
}

/** Who asks, and whether they may: told before anything is looked at. */
function askerOf({ permissions, now }: CallSource, contract: Contract, options: CallOptions): Asker {
  checkOptions(options);
  const around = ambient();
  checkVersion(contract, options.version);
  if (contract.permissions.length > 0) {
    checkPermissions(contract, [
      ...permissions,
      ...(around.permissions ?? []),
      ...(options.permissions ?? []),
    ]);
  }
  return {
    identity: {
      conversation: text('conversation', options.conversation ?? around.conversation),
      turn: text('turn', options.turn ?? around.turn),
      run: text('run', options.run ?? around.run),
      toolCallId: text('toolCallId', options.toolCallId),
      caller: callerIn(options) ?? around.caller,
      weak: options.turn === undefined && around.weak === true,
    },
    at: instantOf('at', options.at ?? around.at) ?? now(),
  };
}

function keyedCall(
  source: CallSource,
  tool: Tool,
  args: unknown,
  leftOut: Validated['leftOut'],
  { identity, at }: Asker,
  options: CallOptions,
): Call {
  const { namespace, address, limits } = source;
  const { contract } = tool;
  const again = text('again', options.again);
  const ownKey = text('key', options.key);
  // Nothing is remembered of a read, so it needs no identity, and may take args that could give none.
  const isRead = contract.effect === 'read';
  const identityLimits = { maxDepth: limits.maxDepth, maxBytes: limits.maxArgsBytes };
  const identityBy = (fields: FieldLists) =>
    identityOf(args, fields, contract.normalize, identityLimits, leftOut.get(fields));
  const identityText = isRead ? '' : identityBy(contract.fields);
  let periodEndsAt: number | null = null;

  function keyIn({ name, per, fields }: Pick<Contract, 'name' | 'per' | 'fields'>): string {
    if (isRead) return '';
    if (ownKey !== undefined) return callerKey(name, ownKey, again);
    const period = periodOf(per, identity, at, contract);
    periodEndsAt ??= period.endsAt;
    const own = fields === contract.fields ? identityText : identityBy(fields);
    return deriveKey({ namespace, contract: name, period, identity: own, again });
  }

  const key = keyIn(contract);
  let content: string | null | undefined;
  let stored: string | null | undefined;
  return {
    tool,
    namespace,
    address,
    args,
    key,
    olderKeys: contract.was.length === 0 ? noKeys : contract.was.map(keyIn).filter((each) => each !== key),
    fingerprint: ownKey === undefined ? null : fingerprint(identityText),
    caller: identity.caller ?? null,
    share: contract.share,
    intent: identityText,
    content() {
      if (content === undefined) content = contentOf(key, withoutRedacted(args, contract), contract.fields);
      return content;
    },
    storedArgs() {
      if (stored === undefined) stored = storedArgs(args, contract, limits);
      return stored;
    },
    periodEndsAt,
    identity,
    inTurn: (turn) =>
      keyedCall(source, tool, args, leftOut, { identity: { ...identity, turn }, at }, options),
    again: again ?? null,
    notAfter: instantOf('notAfter', options.notAfter) ?? null,
    signal: options.signal,
    generation: null,
  };
}

const noKeys: readonly string[] = [];
const nothing = () => null;
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
  return redact.length === 0 ? args : redacted(args, redact);
}

interface Period extends PeriodPart {
  readonly endsAt: number | null;
}

function periodOf(per: Per, identity: Identity, at: number, contract: Contract): Period {
  const { conversation, turn, run } = identity;
  if (per === 'ever') return { text: '-', exact: 'ever', endsAt: null };
  if (per === 'run') {
    const id = run ?? missing(contract, 'run', "`per: 'run'` needs a run");
    return { text: runName(id), exact: JSON.stringify(['run', id]), endsAt: null };
  }
  if (per === 'conversation' || per === 'turn') {
    const id = conversation ?? missing(contract, 'conversation', `\`per: '${per}'\` needs a conversation`);
    const words = conversationName(id);
    if (per === 'conversation')
      return { text: words, exact: JSON.stringify(['conversation', id]), endsAt: null };
    const step = turn ?? missing(contract, 'turn', "`per: 'turn'` needs a turn");
    if (identity.weak && contract.effect === 'irreversible' && !contract.acceptsWeak) {
      missing(contract, 'turn', 'an irreversible effect needs a turn that is known, not guessed');
    }
    return { text: words, exact: JSON.stringify(['turn', id, step]), endsAt: null };
  }
  const { slot, endsAt } = calendarSlot(per, at);
  return { text: slot, exact: JSON.stringify([per.unit, per.zone, slot]), endsAt };
}

const conversationName = shortNames('c', 'conversation');
const runName = shortNames('r', 'run');

/** Ids hold private data and slashes, so a key shows a digest of them. A conversation has many calls. */
function shortNames(letter: string, kind: string): (id: string) => string {
  const names = new Map<string, string>();
  const most = 1_000;
  return (id) => {
    const known = names.get(id);
    if (known !== undefined) return known;
    const name = letter + shortDigest(kind, id);
    if (names.size >= most) names.clear();
    names.set(id, name);
    return name;
  };
}

export const callFields: ReadonlySet<string> = fieldsOf<CallOptions>({
  conversation: true,
  turn: true,
  run: true,
  at: true,
  toolCallId: true,
  key: true,
  again: true,
  notAfter: true,
  signal: true,
  version: true,
  permissions: true,
  caller: true,
});

/** What others call it, and somebody may pass by habit. */
const aliases: Readonly<Record<string, string>> = {
  idempotencyKey: 'key',
  conversationId: 'conversation',
  threadId: 'conversation',
  sessionId: 'conversation',
  turnId: 'turn',
  messageId: 'turn',
  runId: 'run',
  callId: 'toolCallId',
  callerId: 'caller',
};

function checkOptions(options: CallOptions): void {
  const refuse = (path: string, what: string, next: string): never => {
    throw new SemelError('INVALID_ARGS', `${what}.`, { path, next });
  };
  if (typeof options !== 'object' || options === null)
    refuse(
      'options',
      `The options of a call are ${kindOf(options)}, not an object`,
      'Pass { conversation, turn, … }.',
    );
  checkMeant('The options of a call', options, callFields, aliases, 'INVALID_ARGS');
  const { signal } = options;
  // Not by its class: a signal of another realm, or of a polyfill, is one too.
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    refuse('signal', `\`signal\` is ${kindOf(signal)}`, 'Pass an AbortSignal.');
}

function missing(contract: Contract, path: string, why: string): never {
  throw new SemelError('NO_IDENTITY', `${contract.name}: ${why}, and none was given.`, { path });
}

function checkVersion(contract: Contract, asked: string | undefined): void {
  if (asked === undefined || majorOf(asked) === majorOf(contract.version)) return;
  throw new SemelError(
    'VERSION_MISMATCH',
    `${contract.name} has version ${contract.version}; the call asks for ${asked}.`,
    { path: 'version' },
  );
}

function checkPermissions(contract: Contract, granted: readonly string[]): void {
  const lacking = contract.permissions.filter((each) => !granted.includes(each));
  if (lacking.length === 0) return;
  throw new SemelError(
    'NOT_PERMITTED',
    `${contract.name} needs ${lacking.join(', ')}, which this call does not have.`,
    { path: 'permissions' },
  );
}
