// The requests of one try: `ctx.fetch` dispatches first, adds the key, and tracks what became of each request.

import crypto from 'node:crypto';
import { classifyRequestError, classifyStatus, type RequestFate } from '../../core/contract/classify.ts';
import type { Provider } from '../../core/contract/provider.ts';
import { SemelError } from '../../core/errors.ts';
import { providerKey } from '../../core/key/key.ts';
import { MaybeLanded } from '../../core/signals.ts';
import { outsideStepError } from '../steps.ts';
import { watchBody } from './answer-body.ts';
import { type Counted, countRequests, safeMethods } from './counter.ts';
import { followRedirect } from './redirect.ts';
import { findSdkKey, readCarriedKey, sdkKeyPrefix, withKey } from './request-key.ts';
import type { Stop } from './stop.ts';

/** What the requests need from their attempt. */
export interface RequestSource {
  readonly namespace: string;
  readonly recordKey: string;
  readonly providerKeyFence: number | string;
  readonly provider: Provider | undefined;
  /** The keys that the attempt handed out: a request with any other key is not ours to the provider. */
  readonly issuedKeys: Set<string>;
  /** What `prepare` returned may have a key in it. */
  readonly isKeyPrepared?: boolean;
  /** Whether the same request may be sent again: its class is harmless, or its key is trusted. */
  readonly mayRepeat: boolean;
  readonly stop: Stop;
  /** Nothing may be sent outside of a step. */
  readonly isStepsOnly: boolean;
  /** `unkeyedHost`: is about to get a request without our key. */
  dispatch(unkeyedHost?: string): Promise<void>;
}

const noFates: readonly RequestFate[] = [];

/** The key for the target, in its provider's format. */
export function formatKey(provider: Provider | undefined, ...of: Parameters<typeof providerKey>): string {
  const uuid = providerKey(...of);
  return provider?.format?.(uuid) ?? uuid;
}

export class Requests {
  readonly #source: RequestSource;
  /** Created with the first request: most effects use their own client. */
  #fates: RequestFate[] | undefined;
  #sent: Sent[] | undefined;
  #dispatches: Set<Promise<void>> | undefined;
  #identifying: Promise<unknown> | undefined;
  #isOver = false;
  #hasGivenKey = false;
  #hasCheckedKey = false;
  #counted: Counted | undefined;
  /** Headers of the last answer. */
  headers: Headers | undefined;
  #status: number | undefined;

  constructor(source: RequestSource) {
    this.#source = source;
  }

  get signal(): AbortSignal {
    return this.#source.stop.signal;
  }

  get fates(): readonly RequestFate[] {
    return this.#fates ?? noFates;
  }

  /** The last answer, if it was a failure (5xx, 401, 403, 407, 429) and no request succeeded. */
  get failedStatus(): number | undefined {
    if (this.#status === undefined || this.#status < 400 || this.fates.includes('landed')) return undefined;
    return this.#status >= 500 || classifyStatus(this.#status) === 'denied' ? this.#status : undefined;
  }

  /** How many HTTP requests were made by any client while `count` was asked to. */
  get sent(): number {
    return this.#counted?.count ?? 0;
  }

  /** One of these requests was answered with a success. */
  get hasSuccess(): boolean {
    return this.#counted?.hasSuccess ?? false;
  }

  /** One of these requests was sent and got no answer. */
  get hasLostAnswer(): boolean {
    return this.#counted?.hasLostAnswer ?? false;
  }

  /** What the last answer to one of them says, unless it was a lookup; ambiguous if the answer to another one was lost. */
  get answer(): RequestFate | undefined {
    const status = this.#counted?.status;
    if (this.hasLostAnswer) return 'ambiguous';
    return status === undefined ? undefined : classifyStatus(status);
  }

  count<T>(work: () => T): T {
    const { value, counted } = countRequests(work);
    this.#counted = counted;
    return value;
  }

  keyFor(part?: string): string {
    const { namespace, recordKey, providerKeyFence, provider, issuedKeys } = this.#source;
    const key = formatKey(provider, namespace, recordKey, providerKeyFence, part);
    issuedKeys.add(key);
    this.#hasGivenKey = true;
    return key;
  }

  /** A key of ours was read in this try, or put into a request. */
  get hasGivenKey(): boolean {
    return this.#hasGivenKey;
  }

  /** A request was about to leave, with our key or another one. One that was refused before says nothing about keys. */
  get hasCheckedKey(): boolean {
    return this.#hasCheckedKey;
  }

  /** What starts after the end of the try would not be part of how it is judged. */
  throwIfOver(): void {
    if (this.#isOver) throw runOverError();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async refuse(): Promise<never> {
    throw runOverError();
  }

  async dispatch(unkeyedHost?: string): Promise<void> {
    this.throwIfOver();
    const dispatching = this.#source.dispatch(unkeyedHost);
    this.#dispatches ??= new Set();
    this.#dispatches.add(dispatching);
    try {
      await dispatching;
    } finally {
      this.#dispatches.delete(dispatching);
    }
    this.throwIfOver();
  }

  /**
   * The try is over: code that it left running may not dispatch or send any more, since its ending is judged by what was
   * sent until now. Resolves when no dispatch is pending.
   */
  async close(): Promise<void> {
    this.#isOver = true;
    if (this.#dispatches !== undefined) await Promise.allSettled(this.#dispatches);
  }

  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const { provider, stop } = this.#source;
    const method = init?.method ?? (input instanceof Request ? input.method : 'GET');
    // Of the caller's own request, not of one created from it: a derived signal may be garbage collected.
    const signal = this.#joinSignals(init?.signal ?? (input instanceof Request ? input.signal : undefined));
    if (safeMethods.has(method.toUpperCase())) return fetch(new Request(input, init), { signal });
    if (this.#source.isStepsOnly) throw outsideStepError();
    // Numbered before the first await: concurrent requests keep their keys on a retry.
    this.#fates ??= [];
    const fates = this.#fates;
    const nth = fates.length;
    fates.push('not sent');
    const given = new Request(input, init);
    const { own, carried } = await this.#inOrder(async () => {
      const id = await this.#identify(given, init?.body);
      const carried = await readCarriedKey(provider, given);
      return { own: this.#number(given, id, carried.key), carried };
    });
    const isOurs = this.#isKeyOurs(carried.key);
    const request = withKey(provider, given, carried, () =>
      this.keyFor(own.number === 1 ? undefined : `#${own.number}`),
    );
    stop.throwIfRequested();
    this.#hasCheckedKey = true;
    const unkeyedHost = isOurs ? undefined : new URL(given.url).host;
    await this.dispatch(unkeyedHost);
    // Until the response or an error says more.
    fates[nth] = 'ambiguous';
    const again = request.clone();
    let response: Response;
    try {
      response = await fetch(request, { signal, redirect: 'manual' });
      fates[nth] = classifyStatus(response.status);
      this.headers = response.headers;
      this.#status = response.status;
    } catch (error) {
      fates[nth] = classifyRequestError(error);
      throw error;
    } finally {
      own.fate = fates[nth];
    }
    const next = findRedirect(response, again);
    if (next === undefined) {
      return watchBody(response, () => {
        // What the client sends next is this request again, not a second one.
        if (own.fate === 'landed') own.fate = 'ambiguous';
      });
    }
    // The redirected request leaves only now, and the response may have taken long.
    if (!safeMethods.has(next.method)) await this.dispatch(unkeyedHost);
    return fetch(next, { signal });
  }

  /** Concurrent requests are numbered in the order in which they were made, however long reading a body takes. */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = (this.#identifying ?? Promise.resolve()).then(work);
    this.#identifying = result.catch(() => undefined);
    return result;
  }

  async #identify(request: Request, body: unknown): Promise<string> {
    const sdkKey = findSdkKey(this.#source.provider, request);
    if (sdkKey !== undefined) return sdkKey;
    return isStream(body) ? `stream to ${request.method} ${request.url}` : digestRequest(request);
  }

  /** The request has one of our keys: `ctx.fetch` adds it, or the tool read it from `ctx`. */
  #isKeyOurs(carried: string | undefined): boolean {
    const { provider, issuedKeys, isKeyPrepared } = this.#source;
    // The tool sends the key, and semel cannot see that; but a key that was never read cannot have been sent.
    if (provider?.sentBy === 'tool') return this.#hasGivenKey || isKeyPrepared === true;
    return carried === undefined || issuedKeys.has(carried);
  }

  /** A request that an SDK retries by itself is the same one: it keeps its number, and so its key. */
  #number(request: Request, id: string, carried: string | undefined): Sent {
    this.#sent ??= [];
    const earlier = this.#sent.findLast((each) => each.id === id && canBeRetried(each));
    // A target that honours keys recognises a retry by the SDK's own key.
    const isSameKey = carried !== undefined && carried === earlier?.carried;
    const isTrusted = isSameKey || (this.#source.mayRepeat && this.#isKeyOurs(carried));
    if (!isTrusted && earlier?.fate === 'ambiguous')
      throw resendError(this.#source.provider?.name ?? new URL(request.url).host);
    if (earlier !== undefined) {
      // Once this one gets a response, the next equal request is a new one.
      earlier.fate = undefined;
      return earlier;
    }
    const own: Sent = { id, carried, number: this.#sent.length + 1, fate: undefined };
    this.#sent.push(own);
    return own;
  }

  #joinSignals(given: AbortSignal | undefined): AbortSignal {
    return given === undefined ? this.signal : AbortSignal.any([given, this.signal]);
  }
}

/** The fate of a redirected request is known before its redirect is followed. */
function findRedirect(response: Response, request: Request): Request | undefined {
  const next = request.redirect === 'manual' ? undefined : followRedirect(response, request);
  if (next !== undefined && request.redirect === 'error') throw new TypeError('The request was redirected.');
  return next;
}

/** One request of a try, however often it is sent. */
interface Sent {
  /** Distinguishes it from the others. */
  readonly id: string;
  /** The key that the tool or its SDK set. */
  readonly carried: string | undefined;
  readonly number: number;
  /** Once it has ended. */
  fate: RequestFate | undefined;
}

/** An equal request at the same time, or after a response, is a second one on purpose. */
function canBeRetried({ id, fate }: Sent): boolean {
  return id.startsWith(sdkKeyPrefix) || fate === 'ambiguous' || fate === 'denied' || fate === 'not sent';
}

/** A stream can be read once only, and may have no end: its target has to identify it. */
function isStream(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** Reads a copy: the request itself is still to be sent. */
async function digestRequest(request: Request): Promise<string> {
  const { method, url, headers } = request;
  const body = Buffer.from(await request.clone().arrayBuffer());
  // The boundary between the parts of a form is random each time.
  const boundary = /boundary=(.+)/.exec(headers.get('content-type') ?? '')?.[1];
  const hash = crypto.createHash('sha256');
  for (const part of boundary === undefined ? [body] : splitAt(body, boundary)) hash.update(part);
  return `${method} ${url}\n${hash.digest('hex')}`;
}

function* splitAt(bytes: Buffer, mark: string): Generator<Buffer> {
  let from = 0;
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, from)) {
    yield bytes.subarray(from, at);
    from = at + mark.length;
  }
  yield bytes.subarray(from);
}

export function resendError(name: string): MaybeLanded {
  return new MaybeLanded(
    `${name}: this request was already sent and may have landed. It has no key that is trusted, so it is not sent again; ` +
      "switch off the SDK's retries.",
  );
}

function runOverError(): SemelError {
  return new SemelError('ABORTED', 'This run is over, so nothing more may be sent under it.', {
    next: 'Await every request inside `run`.',
    retriable: false,
  });
}
