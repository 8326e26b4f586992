// What an attempt's ending means. The outcome is the join of everything that the attempt did, never its last
// error: the mail may be out although the database refused.

import { AlreadyLanded, MaybeLanded, NotLanded, PartialSuccess, Rejected } from '../signals.ts';
import type { Outcome } from './words.ts';

/** What became of one request: never left · refused · refused for now · landed · nobody knows. */
export type RequestFate = 'not sent' | 'refused' | 'denied' | 'landed' | 'ambiguous';

/** What a contract's `classify` may answer about an error of its own request. */
export type Classified = 'notLanded' | 'rejected' | 'maybeLanded' | AlreadyLanded;

export type Ending =
  | {
      readonly outcome: 'succeeded';
      readonly value: unknown;
      /** It had landed before this attempt. */
      readonly found?: true;
    }
  | {
      readonly outcome: Exclude<Outcome, 'succeeded'>;
      readonly because: string;
      /** It would be definite if the contract said how all its effects are sent. */
      readonly lacksVia?: true;
    };

/**
 * How all effects of a tool are sent: each through `ctx.fetch`, or as one request by whatever client. Without that word
 * a refused request says nothing about what `run` did besides.
 */
export type Via = 'fetch' | 'one-request';

interface Thrown {
  readonly error: unknown;
  /** The line was crossed before it was thrown. */
  readonly dispatched: boolean;
  /** The effect is declared harmless to repeat. */
  readonly repeatable: boolean;
  /** The answer of the contract's or the provider's own classifier. */
  readonly classified: Classified | undefined;
  /** The requests that were made through `ctx.fetch`. */
  readonly requests: readonly RequestFate[];
  readonly via: Via | undefined;
}

export function classify(thrown: Thrown): Ending {
  const { error, dispatched, repeatable, classified } = thrown;
  // What the tool says itself holds before the line too: it may have looked, and found what had landed long ago.
  const word = said(error);
  if (word !== undefined) return word;
  if (!dispatched) return { outcome: 'released', because: 'it was thrown before anything was dispatched' };
  const known = said(classified) ?? byRequests(thrown);
  if (known !== undefined) return known;
  if (repeatable) return { outcome: 'released', because: 'the effect is declared harmless to repeat' };
  const because = 'it was thrown after the line, and nothing says what it means';
  const lacksVia = byRequests({ ...thrown, via: 'one-request' }) !== undefined;
  return { outcome: 'unknown', because, ...(lacksVia && { lacksVia }) };
}

function said(word: unknown): Ending | undefined {
  if (word instanceof NotLanded || word === 'notLanded')
    return { outcome: 'released', because: 'the tool says it did not land' };
  if (word instanceof Rejected || word === 'rejected')
    return { outcome: 'failed', because: 'the tool says it was refused' };
  if (word instanceof AlreadyLanded) return { outcome: 'succeeded', value: word.value, found: true };
  if (word instanceof MaybeLanded || word === 'maybeLanded')
    return { outcome: 'unknown', because: 'the tool cannot tell' };
  if (word instanceof PartialSuccess) return { outcome: 'unknown', because: 'only part of it landed' };
  return undefined;
}

/** A definite answer only where every request has one, and none was made unseen. */
function byRequests({ requests, via, error }: Thrown): Ending | undefined {
  if (via === undefined || (via === 'one-request' && requests.length > 1)) return undefined;
  if (requests.some((fate) => fate === 'landed' || fate === 'ambiguous')) return undefined;
  // Of a client of its own nothing was seen but the error: that it made no connection, or that there is a client.
  const isUnseen = requests.length === 0;
  if (isUnseen && via === 'one-request' && classifyRequestError(error) !== 'not sent') return undefined;
  if (isUnseen && via === 'fetch' && listErrorCodes(error).length > 0) return undefined;
  if (requests.some((fate) => fate === 'refused'))
    return { outcome: 'failed', because: 'every request was refused' };
  return { outcome: 'released', because: 'no request was sent, or it was turned away for now' };
}

/** Tries inside one attempt join: one that nobody knows about, and no success, is unknown whatever came later. */
export function join(tries: readonly Ending[]): Ending {
  const last = tries.at(-1);
  if (last === undefined) throw new Error('An attempt has at least one try.');
  if (last.outcome === 'succeeded') return last;
  return tries.find(({ outcome }) => outcome === 'unknown') ?? last;
}

/** What a response says about its own request. 409 and 425 may mean that the first request is still at work. */
export function classifyStatus(status: number): RequestFate {
  if (status >= 200 && status < 300) return 'landed';
  if (status === 401 || status === 403 || status === 407 || status === 429) return 'denied';
  if (status === 408 || status === 409 || status === 425) return 'ambiguous';
  return status >= 400 && status < 500 ? 'refused' : 'ambiguous';
}

/** Of an error and of what caused it: `fetch` tells the reason only there. */
export function listErrorCodes(error: unknown): readonly string[] {
  return listCauses(error).flatMap((each) => {
    const { code } = each as { code?: unknown };
    return typeof code === 'string' ? [code] : [];
  });
}

/** The error first. A chain may be long, or end in itself. */
export function listCauses(error: unknown): readonly Error[] {
  const chain: Error[] = [];
  try {
    for (let each = error; each instanceof Error && chain.length < 5; each = each.cause) chain.push(each);
  } catch {
    // It ends at what cannot be read.
  }
  return chain;
}

/** With such a code the request may have arrived: only its answer did not. */
export function mayHaveArrived(code: string): boolean {
  return ambiguousCodes.has(code) || /^(?:408|409|425|5\d\d|08\d\d\d|57P\d\d)$/.test(code);
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

/** Anything can be thrown: an object whose fields cannot be read is replaced, so that it stops no ending. */
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

/** What was thrown, in its own words. */
export function describeThrown(thrown: unknown): string {
  try {
    const read = makeReadable(thrown);
    return read instanceof Error ? read.message : String(read);
  } catch {
    return 'an object that has no text';
  }
}

/** Throws where one of the fields that are looked at does. */
function readAll(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const field of ['name', 'message', 'code', 'status', 'syscall', 'cause', 'response'])
    Reflect.get(value, field);
}

const beforeTheConnection = new Set(['connect', 'getaddrinfo', undefined]);

/** These also end a connection that was made: where a client kept the code alone, nobody knows when. */
const alsoLater = new Set(['EHOSTUNREACH', 'ENETUNREACH']);

const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** What a failed `fetch` says about its own request: sure only where the connection was never made. */
export function classifyRequestError(error: unknown): RequestFate {
  for (const cause of listCauses(error)) {
    const { code, syscall } = cause as { code?: unknown; syscall?: unknown };
    // The same codes can end a connection on which the request is out already: only `connect` is sure.
    const isEarly = beforeTheConnection.has(syscall as string);
    const isTold = syscall !== undefined || !alsoLater.has(code as string);
    if (typeof code === 'string' && neverSent.has(code) && isEarly && isTold) return 'not sent';
    // Several addresses were tried and none answered.
    if (cause instanceof AggregateError && cause.errors.length > 0) {
      return cause.errors.every((each) => classifyRequestError(each) === 'not sent')
        ? 'not sent'
        : 'ambiguous';
    }
  }
  return 'ambiguous';
}
