// Decides what the ending of an attempt means: `succeeded`, `released` (not landed: free to try again), `failed` (refused
// for good) or `unknown` (in doubt). The outcome combines everything that the attempt did, not just its last error: the
// mail may be sent although the database refused.

import { isSemelError } from '../errors.ts';
import { AlreadyLanded, MaybeLanded, NotLanded, PartialSuccess, Rejected } from '../signals.ts';
import type { Outcome } from './words.ts';

/** The fate of one request: never sent · refused · refused for now · landed · nobody knows. */
export type RequestFate = 'not sent' | 'refused' | 'denied' | 'landed' | 'ambiguous';

/** What `classify` of a contract may return for an error of its request. */
export type Classified = 'notLanded' | 'rejected' | 'maybeLanded' | AlreadyLanded;

export type Ending =
  | {
      readonly outcome: 'succeeded';
      readonly value: unknown;
      /** Why the value cannot be stored, if the executor knows. */
      readonly omitted?: string;
      /** It had landed before this attempt. */
      readonly found?: true;
    }
  | {
      readonly outcome: Exclude<Outcome, 'succeeded'>;
      readonly because: string;
      /** It would be definite if the contract said how all its effects are sent. */
      readonly lacksWord?: true;
    };

/** How a tool sends all its effects. Without it, a refused request says nothing about what else `run` did. */
export type Via = 'fetch' | 'steps';

interface Thrown {
  readonly error: unknown;
  /** The attempt was dispatched before the error. */
  readonly dispatched: boolean;
  /** The effect is declared harmless to repeat. */
  readonly repeatable: boolean;
  /** From the contract's or the provider's `classify`. */
  readonly classified: Classified | undefined;
  /** What it would mean if the contract said that `run` makes one request. */
  readonly asOneRequest: Classified | undefined;
  /** The requests that were made through `ctx.fetch`. */
  readonly requests: readonly RequestFate[];
  /** What became of the steps that were taken by `ctx.step`. */
  readonly steps: readonly ('landed' | 'not landed' | 'in doubt')[];
  readonly via: Via | undefined;
}

export function classify(thrown: Thrown): Ending {
  const { error, dispatched, repeatable, classified, via } = thrown;
  if (via === 'steps') return classifySteps(thrown);
  // What the tool itself says counts even before dispatch: it may have checked and found that it had landed long ago.
  const signalled = readSignal(error);
  if (signalled !== undefined) return signalled;
  if (!dispatched) return { outcome: 'released', because: 'it was thrown before anything was dispatched' };
  const known = readSignal(classified) ?? classifyRequests(thrown);
  if (known !== undefined) return known;
  if (repeatable) return { outcome: 'released', because: 'the effect is declared harmless to repeat' };
  const because = 'it was thrown after the dispatch, and nothing says what it means';
  const lacksWord = thrown.asOneRequest !== undefined;
  return { outcome: 'unknown', because, ...(lacksWord && { lacksWord }) };
}

function readSignal(signal: unknown): Ending | undefined {
  if (signal instanceof NotLanded || signal === 'notLanded')
    return { outcome: 'released', because: 'the tool says it did not land' };
  if (signal instanceof Rejected || signal === 'rejected')
    return { outcome: 'failed', because: 'the tool says it was refused' };
  if (signal instanceof AlreadyLanded) return { outcome: 'succeeded', value: signal.value, found: true };
  if (signal instanceof MaybeLanded || signal === 'maybeLanded')
    return { outcome: 'unknown', because: 'the tool cannot tell' };
  if (signal instanceof PartialSuccess) return { outcome: 'unknown', because: 'only part of it landed' };
  return undefined;
}

/** The steps are all that it did, so they say what landed: a word about the whole counts only where none did. */
function classifySteps({ steps, error, classified }: Thrown): Ending {
  if (error instanceof AlreadyLanded || error instanceof MaybeLanded) return readSignal(error) as Ending;
  if (steps.includes('in doubt')) return { outcome: 'unknown', because: 'a step is in doubt' };
  if (steps.includes('landed')) return { outcome: 'unknown', because: 'only part of it landed' };
  const said = readSignal(error) ?? readSignal(classified);
  if (said !== undefined) return said;
  return isSemelError(error, 'FAILED')
    ? { outcome: 'failed', because: 'its first step was refused' }
    : { outcome: 'released', because: 'no step has landed' };
}

/** Definite only if every request has a definite fate and none went unseen. */
function classifyRequests({ requests, via, error }: Thrown): Ending | undefined {
  if (via !== 'fetch') return undefined;
  if (requests.some((fate) => fate === 'landed' || fate === 'ambiguous')) return undefined;
  // An error code comes from another client.
  if (requests.length === 0 && listErrorCodes(error).length > 0) return undefined;
  if (requests.some((fate) => fate === 'refused'))
    return { outcome: 'failed', because: 'every request was refused' };
  return { outcome: 'released', because: 'no request was sent, or it was turned away for now' };
}

/** Combines the tries of one attempt: without a success, one unknown try makes the whole unknown. */
export function join(tries: readonly Ending[]): Ending {
  const last = tries.at(-1);
  if (last === undefined) throw new Error('An attempt has at least one try.');
  if (last.outcome === 'succeeded') return last;
  return tries.find(({ outcome }) => outcome === 'unknown') ?? last;
}

/** 409 and 425 may mean that the first request is still being processed, 499 that a proxy or the target gave up on it. */
export function classifyStatus(status: number): RequestFate {
  if (status >= 200 && status < 300) return 'landed';
  if (status === 401 || status === 403 || status === 407 || status === 429) return 'denied';
  if (status === 408 || status === 409 || status === 425 || status === 499) return 'ambiguous';
  return status >= 400 && status < 500 ? 'refused' : 'ambiguous';
}

/** The codes of an error and its causes: `fetch` gives the reason only there. */
export function listErrorCodes(error: unknown): readonly string[] {
  return listCauses(error).flatMap((each) => {
    const { code } = each as { code?: unknown };
    return typeof code === 'string' ? [code] : [];
  });
}

/** The error and its causes. The chain is cut, since it may be long or circular. */
export function listCauses(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  try {
    for (let each = error; each instanceof Error && chain.length < 5; each = each.cause) chain.push(each);
  } catch {
    // It ends at the first cause that cannot be read.
  }
  return chain;
}

/** The request may have arrived although its answer did not. */
export function mayHaveArrived(code: string): boolean {
  return ambiguousCodes.has(code) || /^(?:408|409|425|499|5\d\d|08\d\d\d|57P\d\d)$/.test(code);
}

const ambiguousCodes = new Set([
  'ETIMEDOUT',
  'ETIMEOUT',
  'ESOCKETTIMEDOUT',
  'ESOCKET',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ABORT_ERR',
  'ERR_CANCELED',
  'ERR_NETWORK',
  'ERR_BAD_RESPONSE',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_GOAWAY_SESSION',
  'UND_ERR_ABORTED',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_DESTROYED',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_SOCKET',
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'INTERNAL',
  'UNAVAILABLE',
  'UNKNOWN',
  '40003',
]);

/** Anything can be thrown. Replaces an object whose fields cannot be read, so that the attempt can still end. */
export function makeReadable(thrown: unknown): unknown {
  try {
    if (thrown instanceof AggregateError) for (const each of thrown.errors) readAll(each);
    for (const each of listCauses(thrown)) readAll(each);
    if (typeof thrown === 'object') readAll(thrown);
    return thrown;
  } catch {
    return new Error('what was thrown cannot be read');
  }
}

/** The message of whatever was thrown. */
export function describeThrown(thrown: unknown): string {
  try {
    const read = makeReadable(thrown);
    return read instanceof Error ? read.message : String(read);
  } catch {
    return 'an object that has no text';
  }
}

/** Throws if reading one of the fields that are used does. */
function readAll(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const field of ['name', 'message', 'code', 'status', 'syscall', 'cause', 'response'])
    Reflect.get(value, field);
}

/** If one of these fails, whatever its code, there was no connection. */
const beforeTheConnection = new Set<unknown>(['connect', 'getaddrinfo']);

/** Certain without a syscall too. ETIMEDOUT, EHOSTUNREACH and others can also end an established connection. */
const neverSent = new Set<unknown>([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  // Certificates are checked before the request is sent.
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_TLS_CERT_ALTNAME_FORMAT',
  'HOSTNAME_MISMATCH',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Only certain that the request was not sent if no connection was made. */
export function classifyRequestError(error: unknown): RequestFate {
  for (const cause of listCauses(error)) {
    const { code, syscall } = cause as { code?: unknown; syscall?: unknown };
    // The same codes can end a connection after the request was sent.
    const isEarly = syscall === undefined ? neverSent.has(code) : beforeTheConnection.has(syscall);
    if (isEarly && typeof code === 'string') return 'not sent';
    // Several addresses were tried and none answered.
    if (cause instanceof AggregateError && cause.errors.length > 0) {
      return cause.errors.every((each) => classifyRequestError(each) === 'not sent')
        ? 'not sent'
        : 'ambiguous';
    }
  }
  return 'ambiguous';
}
