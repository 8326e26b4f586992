// Options of an API with Idempotency-Key. Refuses unknown options, and keys that all callers would share by mistake.

import type { AttemptContext } from '../../call/index.ts';
import type { Duration } from '../../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../../core/contract/known-fields.ts';
import type { Verification, VerifyContext } from '../../core/verification.ts';
import { type ReceiverTerms, refuse } from '../receiver.ts';

/** What a record is about. */
export interface KeyedRequest {
  readonly method: string;
  readonly route: string;
  /** As the client sent it: another caller may send the same. */
  readonly key: string;
  /** Whose key it is, as `caller` said; null: anonymous. */
  readonly caller: string | null;
}

/** `Incoming` is the framework's own request. */
export interface IdempotentOptions<Incoming, Required extends boolean = boolean> extends ReceiverTerms {
  /** Names the records: 'orders.create'. */
  readonly name: string;
  /**
   * The caller, from your authentication: one caller's key never gets another caller's response. Undefined: 401. Use
   * 'anonymous' only if all callers may see each other's responses.
   */
  readonly caller: 'anonymous' | ((incoming: Incoming) => CallerId | Promise<CallerId>);
  /** False: a request without a key runs unguarded, without a `ctx`. @default true */
  readonly required?: Required;
  /** The part of the URL that counts, besides the method; ids in the path do not then, unless `fingerprint` has them. @default its path */
  readonly route?: string;
  /** How long a response is replayed. @default '24h' */
  readonly keepFor?: Duration;
  /** What must be equal under one key, as plain data. @default the query and the body */
  readonly fingerprint?: (incoming: Incoming) => unknown;
  /** Further headers to replay. */
  readonly headers?: readonly string[];
  /** Maximum size of a request's body. @default 1 MiB */
  readonly maxBytes?: number;
  /** A larger response is sent, but not stored: a retry only learns that it is done. @default 512 KiB */
  readonly maxResponseBytes?: number;
  /** How long the client may take to send the body. @default '30s' */
  readonly bodyTimeout?: Duration;
  /**
   * Finds out whether the handler's effect of this caller and key landed, for a record in doubt; the response is replayed from then
   * on. The caller's id is stored in the record for it.
   */
  readonly verify?: (
    request: KeyedRequest,
    ctx: VerifyContext,
  ) => Verification<Response> | Promise<Verification<Response>>;
}

type CallerId = string | null | undefined;

/** Undefined only where the key is optional and was not sent. */
export type ContextFor<Required extends boolean> = Required extends true
  ? AttemptContext
  : AttemptContext | undefined;

const optionNames = fieldNames<IdempotentOptions<unknown>>({
  name: true,
  caller: true,
  required: true,
  route: true,
  keepFor: true,
  fingerprint: true,
  headers: true,
  maxBytes: true,
  maxResponseBytes: true,
  bodyTimeout: true,
  verify: true,
  effect: true,
  version: true,
  lease: true,
  timeout: true,
  maxAttempts: true,
  failureWindow: true,
  provider: true,
  verifyAfter: true,
  via: true,
  dispatch: true,
  mode: true,
  onDoubt: true,
  classify: true,
  transaction: true,
  onError: true,
});

/** For programs without types. */
export function checkOptions<Incoming>(options: IdempotentOptions<Incoming>, handler: unknown): void {
  if (typeof options !== 'object' || options === null)
    refuse('options', 'idempotent() expects options second.', "Write { name: 'orders.create', caller }.");
  checkKnown('idempotent', options, optionNames);
  if (options.caller !== 'anonymous' && typeof options.caller !== 'function')
    refuse(
      'caller',
      `${options.name}: \`caller\` is missing, so nobody knows whose keys these are.`,
      "Pass caller: (request) => …, the id of the signed-in user, or 'anonymous'.",
    );
  if (typeof handler !== 'function')
    refuse('handler', `${options.name}: the handler is missing.`, 'Pass it third.');
}
