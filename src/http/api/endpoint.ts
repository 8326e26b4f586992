// Idempotency-Key for your own API, in any framework: identifies caller and request, makes one call of the receiver's tool, and
// decides what is sent. The framework says how to run the handler and how to send.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { AttemptContext } from '../../call/index.ts';
import { durationMs } from '../../core/contract/duration.ts';
import { isSemelError, SemelError, withReceipt } from '../../core/errors.ts';
import { canonicalJson } from '../../core/key/canonical-json.ts';
import { digest } from '../../core/key/key.ts';
import { MaybeLanded, NotLanded } from '../../core/signals.ts';
import { landed, unsure, type Verification } from '../../core/verification.ts';
import { markExternal, type Semel } from '../../semel/index.ts';
import { BodyRefused } from '../body.ts';
import { type Answer, type ProblemOptions, toProblem } from '../problem.ts';
import { checkBytes, createReceiver } from '../receiver.ts';
import { readIdempotencyKey } from './idempotency-key.ts';
import { checkOptions, type IdempotentOptions, type KeyedRequest } from './options.ts';
import { type Captured, listReplayed, toReplay, toStored } from './stored-response.ts';

/** A request as the framework gives it. */
export interface Asked<Incoming> {
  readonly incoming: Incoming;
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly key: string | readonly string[] | null | undefined;
  /** Reads the body: its bytes, or what a framework has made of them. Undefined: somebody has read it, and not left it whole. */
  readBody(limits: {
    maxBytes: number;
    timeoutMs: number;
  }): Promise<{ raw: Uint8Array } | { parsed: unknown } | undefined>;
  /** The handler finds the body where `readBody` leaves it. */
  readonly leavesBody?: boolean;
  /** The request with a body that can be read once more, for a `fingerprint` of the user's own. @default incoming */
  readonly withBody?: () => Incoming;
}

/** Runs the handler, and reads its response as far as it is kept. */
export type Execute = (ctx: AttemptContext, maxBytes: number) => Promise<Captured>;

export type Outgoing =
  /** The response that the handler has made now. */
  | { readonly is: 'own' }
  /** No key, and none is required. */
  | { readonly is: 'unguarded' }
  | { readonly is: 'answer'; readonly answer: Answer };

export interface Endpoint<Incoming> {
  handle(asked: Asked<Incoming>, execute: Execute): Promise<Outgoing>;
  /** Reports what a handler without a key threw, and says what its client is answered. */
  fail(error: unknown): Answer;
}

interface Args extends Omit<KeyedRequest, 'caller'> {
  readonly payload: string;
  /** Only for `verify`: an id may be more than a ledger should know. */
  readonly caller?: string | null;
}

export function createEndpoint<Incoming>(
  semel: Semel,
  options: IdempotentOptions<Incoming>,
  handler: unknown,
): Endpoint<Incoming> {
  checkOptions(options, handler);
  const {
    name,
    caller,
    required = true,
    route: ownRoute,
    keepFor = '24h',
    fingerprint,
    headers,
    maxBytes = 1024 * 1024,
    maxResponseBytes = 512 * 1024,
    bodyTimeout = '30s',
    verify,
    ...terms
  } = options;
  const replayed = listReplayed(name, headers);
  checkBytes(name, 'maxBytes', maxBytes);
  checkBytes(name, 'maxResponseBytes', maxResponseBytes);
  const timeoutMs = durationMs(bodyTimeout, 'bodyTimeout');
  const executing = new AsyncLocalStorage<((ctx: AttemptContext) => Promise<unknown>) | undefined>();
  const receiver = createReceiver<Args>(
    semel,
    {
      name,
      // The key has it too. A `verify` that is added later must not turn what is recorded into another request.
      volatile: ['caller'],
      keepMs: durationMs(keepFor, 'keepFor'),
      run(_args, ctx) {
        const execute = executing.getStore();
        if (execute === undefined) throw new NotLanded('Only a request can run it.');
        return executing.run(undefined, () => execute(ctx));
      },
      verify:
        verify &&
        (async ({ method, route, key, caller: whose }, ctx) => {
          // By its key alone, another caller's effect would be found, and its response given to this one.
          if (whose === undefined) return unsure('it was recorded without its caller');
          return storeFound(
            await verify({ method, route, key, caller: whose }, ctx),
            maxResponseBytes,
            replayed,
          );
        }),
    },
    terms,
  );
  // A sweep has no request.
  markExternal(receiver.tool);

  async function answer(asked: Asked<Incoming>, execute: Execute): Promise<Outgoing> {
    const { incoming, method, url, withBody = () => incoming } = asked;
    if (safeMethods.has(method))
      throw new BodyRefused(405, `${method} needs no Idempotency-Key.`, 'Guard only what changes something.');
    const key = readIdempotencyKey(asked.key);
    if (key === undefined && !required) {
      if (asked.leavesBody) await asked.readBody({ maxBytes, timeoutMs });
      return { is: 'unguarded' };
    }
    if (key === undefined)
      throw new BodyRefused(400, 'The Idempotency-Key is missing.', 'Send one, such as a UUID.');
    const scope = await readCaller(caller, incoming);
    const body = await asked.readBody({ maxBytes, timeoutMs });
    const [path = '', query = ''] = splitOnce(url, '?');
    const route = ownRoute ?? path;
    // Compared by a part of it, another body would be answered with the response to this one.
    if (fingerprint === undefined && body === undefined) throw notWhole(name);
    const payload = digestPayload(
      fingerprint === undefined ? { query, ...body } : { parsed: await fingerprint(withBody()) },
    );
    let own: { readonly captured: Captured; readonly stored: unknown } | undefined;
    const executeHere = async (ctx: AttemptContext) => {
      const captured = await execute(ctx, maxResponseBytes);
      const stored = toStored(captured, replayed);
      own = { captured, stored };
      refuseUnsettled(captured.status);
      return stored;
    };
    const result = await executing.run(executeHere, () =>
      receiver.call(
        { method, route, key, payload, ...(verify === undefined ? {} : { caller: scope[1] ?? null }) },
        {
          // The caller is part of the key, so that two of them may choose the same.
          key: `${key} ${digest('semel/http', ...scope, method, route, key)}`,
          caller: digest('semel/http', ...scope),
        },
      ),
    );
    if (result.ok) {
      // Equal only if it is this attempt's own: another one may have been faster.
      if (own !== undefined && result.value === own.stored) return { is: 'own' };
      const replay = toReplay(result.value, replayed);
      if (replay !== undefined) return { is: 'answer', answer: replay };
      return refused(withReceipt(new SemelError('RESULT_OMITTED', `${name}: done.`), result.receipt));
    }
    const { error } = result;
    if (own !== undefined && isUnsettled(own.captured.status)) {
      if (error.code !== 'NOT_LANDED') receiver.report(error);
      return { is: 'own' };
    }
    // The client whose request failed gets 500; later ones learn that it is in doubt.
    return refused(error, isDoubt(error) && result.receipt.executed ? { status: 500 } : {});
  }

  function refused(error: SemelError, options: Partial<ProblemOptions> = {}): Outgoing {
    return { is: 'answer', answer: refuseWith(error, options) };
  }

  function refuseWith(error: SemelError, options: Partial<ProblemOptions> = {}): Answer {
    const answered = toProblem(error, { to: 'api', ...options });
    const isOwn = answered.status >= 500 && !(error instanceof BodyRefused);
    if (isOwn || isDoubt(error)) receiver.report(error);
    return answered;
  }

  return {
    async handle(asked, execute) {
      try {
        return await answer(asked, execute);
      } catch (error) {
        if (error instanceof BodyRefused)
          return refused(error, { status: error.status, detail: error.message });
        if (isSemelError(error)) return refused(error);
        return refused(
          new SemelError('CONTRACT_INVALID', `${name}: the request could not be read.`, { cause: error }),
        );
      }
    },
    fail: (cause) =>
      refuseWith(new SemelError('CONTRACT_INVALID', `${name}: its handler threw, without a key.`, { cause })),
  };
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/**
 * A 5xx is not an outcome: what the handler did before it is unknown, so it is a doubt, unless its transaction was rolled back. A
 * handler that denies a request (401, 403, 429) says that it did nothing: the key stays free.
 */
function refuseUnsettled(status: number): void {
  if (status >= 500) throw new MaybeLanded(`the handler answered ${status}`);
  if (isDenied(status)) throw new NotLanded(`the handler answered ${status}`);
}

function isUnsettled(status: number): boolean {
  return status >= 500 || isDenied(status);
}

function isDenied(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}

function isDoubt({ code }: SemelError): boolean {
  return code === 'IN_DOUBT' || code === 'PARTIAL_SUCCESS';
}

async function readCaller<Incoming>(
  caller: IdempotentOptions<Incoming>['caller'],
  incoming: Incoming,
): Promise<readonly string[]> {
  if (caller === 'anonymous') return ['anonymous'];
  const id = await caller(incoming);
  // A string that is not well-formed would have the same digest as another one.
  if (typeof id === 'string' && id !== '' && id.isWellFormed()) return ['caller', id];
  throw new SemelError('NOT_PERMITTED', 'Nobody is signed in.');
}

function notWhole(name: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `${name}: a body parser has consumed part of the body.`, {
    path: 'fingerprint',
    next: 'Pass `fingerprint`: the parts of the request that must be equal under one key, such as its fields and the hashes of its files.',
  });
}

function splitOnce(text: string, at: string): readonly string[] {
  const index = text.indexOf(at);
  return index === -1 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/** Raw bytes never have the digest of parsed ones. */
function digestPayload(given: { query?: string; raw?: Uint8Array; parsed?: unknown }): string {
  const { query = '', raw, parsed } = given;
  const hash = createHash('sha256').update(`${Buffer.byteLength(query)}:${query}`);
  if (raw !== undefined) return `raw:${hash.update(raw).digest('hex')}`;
  return `parsed:${hash.update(canonicalJson(parsed ?? null, { path: 'body' })).digest('hex')}`;
}

/** `verify` gives a response, as the handler would have. */
async function storeFound(
  found: Verification<Response>,
  maxBytes: number,
  replayed: ReadonlySet<string>,
): Promise<Verification> {
  if (found?.verdict !== 'landed') return found;
  if (!(found.value instanceof Response)) return landed(undefined, found.remoteRef);
  const { status, headers } = found.value;
  const body = new Uint8Array(await found.value.arrayBuffer());
  const captured = { status, headers: [...headers], body: body.length > maxBytes ? undefined : body };
  return landed(toStored(captured, replayed), found.remoteRef);
}
