// Resolves a call's identity from its options and the ambient identity, and refuses calls without the required permissions.

import { ambient, type Identity, type Inherited, noAmbient, readCaller } from '../../call/index.ts';
import { toInstant } from '../../core/clock.ts';
import type { Contract } from '../../core/contract/contract.ts';
import { checkMeant, fieldNames } from '../../core/contract/known-fields.ts';
import { majorVersion } from '../../core/contract/version.ts';
import { SemelError } from '../../core/errors.ts';
import { describeKind } from '../../core/plain.ts';
import { checkText } from '../../core/text.ts';
import type { CallOptions } from '../definition.ts';

export interface CallIdentity {
  readonly identity: Identity;
  /** The instant that determines calendar periods; undefined: now. */
  readonly at: number | undefined;
}

/** Checks options, version and permissions too, before anything else happens. */
export function resolveIdentity(
  permissions: readonly string[],
  contract: Contract,
  options: CallOptions,
): CallIdentity {
  const outer = ambient();
  const isPlain = options === noOptions && contract.permissions.length === 0;
  if (isPlain && outer === noAmbient) return noIdentity;
  if (isPlain && outer === lastAmbient) return lastIdentity;
  checkOptions(options);
  checkVersion(contract, options.version);
  if (contract.permissions.length > 0) {
    checkPermissions(contract, [
      ...permissions,
      ...(outer.permissions ?? []),
      ...(options.permissions ?? []),
    ]);
  }
  const resolved: CallIdentity = {
    identity: {
      conversation: checkText('conversation', orOuter(options.conversation, outer.conversation)),
      turn: checkText('turn', orOuter(options.turn, outer.turn)),
      run: checkText('run', orOuter(options.run, outer.run)),
      toolCallId: checkText('toolCallId', options.toolCallId),
      caller: readCaller(options) ?? outer.caller,
      weak: options.turn === undefined && outer.weak === true,
    },
    at: toInstant('at', orOuter(options.at, outer.at)),
  };
  // A Date is mutable, so it cannot be remembered.
  if (isPlain && typeof outer.at !== 'object') {
    lastAmbient = outer;
    lastIdentity = resolved;
  }
  return resolved;
}

/** Not `??`: a null that a caller without types passes is a missing id, not the surrounding one. The checks refuse it. */
function orOuter<Value>(given: Value | undefined, outer: Value | undefined): Value | undefined {
  return given === undefined ? outer : given;
}

const noIdentity: CallIdentity = {
  identity: Object.freeze({
    conversation: undefined,
    turn: undefined,
    run: undefined,
    toolCallId: undefined,
    caller: undefined,
    weak: false,
  }),
  at: undefined,
};

/** Calls without options mostly share one ambient identity. */
let lastAmbient: Inherited | undefined;
let lastIdentity: CallIdentity = noIdentity;

export const noOptions: CallOptions = Object.freeze({});

export const callFields: ReadonlySet<string> = fieldNames<CallOptions>({
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

/** Names that other libraries use. */
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
      `The options of a call are ${describeKind(options)}, not an object`,
      'Pass { conversation, turn, … }.',
    );
  checkMeant('The options of a call', options, callFields, aliases, 'INVALID_ARGS');
  const { signal } = options;
  // Not `instanceof`: a signal may come from another realm or a polyfill.
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    refuse('signal', `\`signal\` is ${describeKind(signal)}`, 'Pass an AbortSignal.');
}

function checkVersion(contract: Contract, requested: string | undefined): void {
  if (requested === undefined || majorVersion(requested) === majorVersion(contract.version)) return;
  throw new SemelError(
    'VERSION_MISMATCH',
    `${contract.name} has version ${contract.version}; the call asks for ${requested}.`,
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
