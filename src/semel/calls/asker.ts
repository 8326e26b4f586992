// Who makes a call, and whether they may: from its options and from the code around it.

import type { Identity } from '../../call/index.ts';
import { toInstant } from '../../core/clock.ts';
import { type Contract, majorVersion } from '../../core/contract/contract.ts';
import { checkMeant, fieldNames } from '../../core/contract/known-fields.ts';
import { SemelError } from '../../core/errors.ts';
import { describeKind } from '../../core/plain.ts';
import { checkText } from '../../core/text.ts';
import type { CallOptions } from '../definition.ts';
import { type Ambient, ambient, callerIn, noAmbient } from './ambient.ts';

export interface Asker {
  readonly identity: Identity;
  /** The instant that calendar periods are taken from; undefined: now. */
  readonly at: number | undefined;
}

/** Who asks, and whether they may: told before anything is looked at. */
export function askerOf(permissions: readonly string[], contract: Contract, options: CallOptions): Asker {
  const around = ambient();
  const isPlain = options === noOptions && contract.permissions.length === 0;
  if (isPlain && around === noAmbient) return nobody;
  if (isPlain && around === lastAround) return lastAsker;
  checkOptions(options);
  checkVersion(contract, options.version);
  if (contract.permissions.length > 0) {
    checkPermissions(contract, [
      ...permissions,
      ...(around.permissions ?? []),
      ...(options.permissions ?? []),
    ]);
  }
  const asker: Asker = {
    identity: {
      conversation: checkText('conversation', options.conversation ?? around.conversation),
      turn: checkText('turn', options.turn ?? around.turn),
      run: checkText('run', options.run ?? around.run),
      toolCallId: checkText('toolCallId', options.toolCallId),
      caller: callerIn(options) ?? around.caller,
      weak: options.turn === undefined && around.weak === true,
    },
    at: toInstant('at', options.at ?? around.at),
  };
  // A Date can be set; whatever else is around a call stays as it is.
  if (isPlain && typeof around.at !== 'object') {
    lastAround = around;
    lastAsker = asker;
  }
  return asker;
}

const nobody: Asker = {
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

/** Who asks for a call without options: what is around it, and so around the next one. */
let lastAround: Ambient | undefined;
let lastAsker: Asker = nobody;

/** What a call without options passes. */
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
      `The options of a call are ${describeKind(options)}, not an object`,
      'Pass { conversation, turn, … }.',
    );
  checkMeant('The options of a call', options, callFields, aliases, 'INVALID_ARGS');
  const { signal } = options;
  // Not by its class: a signal of another realm, or of a polyfill, is one too.
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    refuse('signal', `\`signal\` is ${describeKind(signal)}`, 'Pass an AbortSignal.');
}

function checkVersion(contract: Contract, asked: string | undefined): void {
  if (asked === undefined || majorVersion(asked) === majorVersion(contract.version)) return;
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
