// The requests of one try: `ctx.fetch` adds the key, crosses the line first, and remembers what became of each.

import crypto from 'node:crypto';
import { classifyRequestError, classifyStatus, type RequestFate } from '../../core/contract/classify.ts';
import type { Provider } from '../../core/contract/provider.ts';
import { SemelError } from '../../core/errors.ts';
import { providerKey } from '../../core/key/key.ts';
import { MaybeLanded } from '../../core/signals.ts';
import { followRedirect } from './redirect.ts';
import { findSdkKey, readCarriedKey, sdkKeyPrefix, withKey } from './request-key.ts';
import type { Stop } from './stop.ts';

/** What sending needs of its attempt. */
export interface RequestSource {
  readonly namespace: string;
  readonly recordKey: string;
  readonly providerKeyFence: number | string;
  readonly provider: Provider | undefined;
  /** The keys that the attempt has given out: a request with another one is not known by our key. */
  readonly issuedKeys: Set<string>;
  /** Whether the same request may be sent once more: its class is harmless, or its key is trusted. */
  readonly mayRepeat: boolean;
  readonly stop: Stop;
  /** `unkeyed`: to where the request goes that is about to leave without a key of ours. */
  dispatch(unkeyed?: string): Promise<void>;
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
const nothing: readonly RequestFate[] = [];

export class Requests {
  readonly #source: RequestSource;
  /** Made with the first request: most effects send by a client of their own. */
  #fates: RequestFate[] | undefined;
  #sent: Sent[] | undefined;
  #crossings: Set<Promise<void>> | undefined;
  #marking: Promise<unknown> | undefined;
  #isOver = false;

  constructor(source: RequestSource) {
    this.#source = source;
  }

  get fates(): readonly RequestFate[] {
    return this.#fates ?? nothing;
  }

  keyFor(part?: string): string {
    const { namespace, recordKey, providerKeyFence, provider, issuedKeys } = this.#source;
    const uuid = providerKey(namespace, recordKey, providerKeyFence, part);
    const key = provider?.format?.(uuid) ?? uuid;
    issuedKeys.add(key);
    return key;
  }

  async dispatch(unkeyed?: string): Promise<void> {
    if (this.#isOver) throw runOverError();
    const crossing = this.#source.dispatch(unkeyed);
    this.#crossings ??= new Set();
    this.#crossings.add(crossing);
    try {
      await crossing;
    } finally {
      this.#crossings.delete(crossing);
    }
    if (this.#isOver) throw runOverError();
  }

  /**
   * The try is over: what it left behind may cross no line and send nothing any more, since its ending is judged by what
   * was sent until now. Resolves when no crossing is under way.
   */
  async close(): Promise<void> {
    this.#isOver = true;
    if (this.#crossings !== undefined) await Promise.allSettled(this.#crossings);
  }

  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const { provider, stop } = this.#source;
    const method = init?.method ?? (input instanceof Request ? input.method : 'GET');
    // The caller's own, not that of a request made from it: those are tied to it so loosely that it may be collected.
    const signal = this.#joined(init?.signal ?? (input instanceof Request ? input.signal : undefined));
    if (safeMethods.has(method.toUpperCase())) return fetch(new Request(input, init), { signal });
    // Its number is taken before anything is waited for: requests made at once keep their keys on a retry.
    this.#fates ??= [];
    const fates = this.#fates;
    const nth = fates.length;
    fates.push('not sent');
    const given = new Request(input, init);
    const { own, carried } = await this.#inOrder(async () => {
      const mark = await this.#markOf(given, init?.body);
      const carried = await readCarriedKey(provider, given);
      return { own: this.#numbered(given, mark, carried.key), carried };
    });
    const isOurs = this.#isKeyOurs(carried.key);
    const request = withKey(provider, given, carried, () =>
      this.keyFor(own.number === 1 ? undefined : `#${own.number}`),
    );
    stop.throwIfRequested();
    const unkeyed = isOurs ? undefined : new URL(given.url).host;
    await this.dispatch(unkeyed);
    // Until it is known what became of it, nobody knows.
    fates[nth] = 'ambiguous';
    const again = request.clone();
    let response: Response;
    try {
      response = await fetch(request, { signal, redirect: 'manual' });
      fates[nth] = classifyStatus(response.status);
    } catch (error) {
      fates[nth] = classifyRequestError(error);
      throw error;
    } finally {
      own.fate = fates[nth];
    }
    const next = redirectFrom(response, again);
    if (next === undefined) return response;
    // It is sent only now, however long the answer took.
    if (!safeMethods.has(next.method)) await this.dispatch(unkeyed);
    return fetch(next, { signal });
  }

  /** Requests made at once get their numbers as they were made, however long it takes to read one. */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = (this.#marking ?? Promise.resolve()).then(work);
    this.#marking = result.catch(() => undefined);
    return result;
  }

  async #markOf(request: Request, body: unknown): Promise<string> {
    const made = findSdkKey(this.#source.provider, request);
    if (made !== undefined) return made;
    return isStream(body) ? `stream to ${request.method} ${request.url}` : wordsOf(request);
  }

  /** The provider knows the request by a key of ours: one that `ctx.fetch` adds, or that the tool has asked for. */
  #isKeyOurs(carried: string | undefined): boolean {
    const { provider, issuedKeys } = this.#source;
    // Where the tool sends it, semel does not see it; but a key that nobody asked for is not sent.
    if (provider?.sentBy === 'tool') return issuedKeys.size > 0;
    return carried === undefined || issuedKeys.has(carried);
  }

  /** An SDK that sends a request again by itself means the same: it keeps its number, and so its key. */
  #numbered(request: Request, mark: string, carried: string | undefined): Sent {
    this.#sent ??= [];
    const earlier = this.#sent.findLast((each) => each.mark === mark && isSentAgain(each));
    // Under a key of its own that stays the same, a target that honours keys knows it again.
    const isSameKey = carried !== undefined && carried === earlier?.carried;
    const isTrusted = isSameKey || (this.#source.mayRepeat && this.#isKeyOurs(carried));
    if (!isTrusted && earlier?.fate === 'ambiguous')
      throw resendError(this.#source.provider?.name ?? new URL(request.url).host);
    if (earlier !== undefined) {
      // Once it is answered, the next one like it is another.
      earlier.fate = undefined;
      return earlier;
    }
    const own: Sent = { mark, carried, number: this.#sent.length + 1, fate: undefined };
    this.#sent.push(own);
    return own;
  }

  #joined(given: AbortSignal | undefined): AbortSignal {
    const { signal } = this.#source.stop;
    return given === undefined ? signal : AbortSignal.any([given, signal]);
  }
}

/** Where a redirect leads says nothing of the request that was redirected: its fate is known before it is followed. */
function redirectFrom(response: Response, request: Request): Request | undefined {
  const next = request.redirect === 'manual' ? undefined : followRedirect(response, request);
  if (next !== undefined && request.redirect === 'error')
    throw new TypeError('The request was followRedirect.');
  return next;
}

/** One request of a try, however often it is sent. */
interface Sent {
  /** What tells it from the others. */
  readonly mark: string;
  /** The key that it came with. */
  readonly carried: string | undefined;
  readonly number: number;
  /** Once it has ended. */
  fate: RequestFate | undefined;
}

/** Two that are alike and under way at once, or after one that was answered, are two on purpose. */
function isSentAgain({ mark, fate }: Sent): boolean {
  return mark.startsWith(sdkKeyPrefix) || fate === 'ambiguous' || fate === 'denied' || fate === 'not sent';
}

/** Its words can be read once, and it may have no end: where it goes has to tell. */
function isStream(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** Of a copy: the request goes on to be sent. */
async function wordsOf(request: Request): Promise<string> {
  const { method, url, headers } = request;
  const body = Buffer.from(await request.clone().arrayBuffer());
  // What stands between the parts of a form is made up afresh each time.
  const boundary = /boundary=(.+)/.exec(headers.get('content-type') ?? '')?.[1];
  const hash = crypto.createHash('sha256');
  for (const part of boundary === undefined ? [body] : between(body, boundary)) hash.update(part);
  return `${method} ${url}\n${hash.digest('hex')}`;
}

function* between(bytes: Buffer, mark: string): Generator<Buffer> {
  let from = 0;
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, from)) {
    yield bytes.subarray(from, at);
    from = at + mark.length;
  }
  yield bytes.subarray(from);
}

export function resendError(name: string): MaybeLanded {
  return new MaybeLanded(
    `${name}: this request went out already and may have landed. No key of it is trusted, so it is not sent again; ` +
      'switch off the retries of the SDK.',
  );
}

function runOverError(): SemelError {
  return new SemelError('ABORTED', 'This run is over: nothing may be sent in its name any more.', {
    next: 'Await every request inside `run`.',
    retriable: false,
  });
}
