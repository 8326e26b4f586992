// Sends signed requests by `fetch`, again where a service asks for it, and learns the service's time from every answer. What
// a request did if its reply was lost, the caller finds out: every write is conditional and can be recognised.

import { createByteCollector } from '../../core/byte-collector.ts';
import { type Clock, type Random, withTimeout } from '../../core/clock.ts';
import { describeThrown } from '../../core/contract/classify.ts';
import { isSemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import type { DateClock } from '../cells/date-clock.ts';
import type { AwsPlace } from './place.ts';
import { type AwsCredentials, sign } from './sign.ts';

export interface AwsRequest {
  readonly method: string;
  /** Encoded, after the endpoint: `/bucket/name`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface AwsAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** For what is quoted from the parsed text: an escape in it could have hidden a secret. */
  readonly redact: (quoted: string) => string;
}

/** The service answered with an error. */
export class AwsError extends Error {
  override readonly name = 'AwsError';
  readonly code: string;
  readonly status: number;

  constructor(code: string, status: number, message: string) {
    super(firstLine(message));
    this.code = firstLine(code);
    this.status = status;
  }
}

export type AwsClient = (request: AwsRequest) => Promise<AwsAnswer>;

interface ClientOptions extends AwsPlace {
  readonly service: string;
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  readonly random: Random;
  readonly dates: DateClock;
  readonly timeoutMs: number;
  /** The error code in an answer. */
  readonly parseError: (answer: AwsAnswer) => AwsError;
}

const maxTries = 4;
const firstPauseMs = 50;
/** Requests under way at once; more wait. */
const maxOpen = 64;

/** The error code says that a retry may succeed. */
const passing =
  /^(Throttling|ThrottlingException|ProvisionedThroughputExceededException|RequestLimitExceeded|SlowDown|ServiceUnavailable|InternalServerError|InternalError|RequestTimeout|ConditionalRequestConflict|OperationAborted|TransactionConflictException)$/;
/** Our clock, or the estimate of the service's, is wrong. The answer tells the right time. */
const skewed = /^(RequestTimeTooSkewed|RequestExpired|InvalidSignatureException|SignatureDoesNotMatch)$/;

export function createClient(options: ClientOptions): AwsClient {
  const { clock, dates, random, service, region, endpoint, timeoutMs, parseError } = options;
  const waiting: (() => void)[] = [];
  let open = 0;

  return async (request) => {
    if (open >= maxOpen) await new Promise<void>((resolve) => waiting.push(resolve));
    else open += 1;
    try {
      return await askAgain(request);
    } finally {
      // The slot goes to the next waiting request.
      const next = waiting.shift();
      if (next === undefined) open -= 1;
      else next();
    }
  };

  async function askAgain(request: AwsRequest): Promise<AwsAnswer> {
    const startedAt = clock.mono();
    for (let tries = 1; ; tries += 1) {
      const leftMs = timeoutMs - (clock.mono() - startedAt);
      const pauseMs = firstPauseMs * 2 ** tries * (0.5 + random.fraction());
      const mayRepeat = tries < maxTries && pauseMs < leftMs;
      try {
        // At most half of the time, which leaves time to retry after a lost reply.
        const answer = await ask(request, Math.max(1, Math.min(leftMs, timeoutMs / 2)));
        if (answer.status < 400 || answer.status === 404 || answer.status === 412) return answer;
        const error = parseError(answer);
        const isPassing = answer.status >= 500 || answer.status === 429 || passing.test(error.code);
        if (!mayRepeat || !(isPassing || (tries === 1 && skewed.test(error.code)))) throw error;
      } catch (error) {
        // No answer: a lost connection is tried again, as long as there is time.
        if (error instanceof AwsError || !mayRepeat) throw error;
      }
      await new Promise<void>((resolve) => clock.setTimeout(resolve, pauseMs));
    }
  }

  async function ask({ method, path, query = {}, headers = {}, body = '' }: AwsRequest, leftMs: number) {
    const url = new URL(endpoint + path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    // As signed: URLSearchParams writes a space as `+`.
    url.search = url.search.replaceAll('+', '%20');
    // A provider that hangs would keep its place among the open requests for good.
    const credentials = await withTimeout(options.credentials(), clock, leftMs).catch((error: unknown) => {
      throw isSemelError(error)
        ? error
        : new Error(`its credentials could not be had: ${describeThrown(error)}`);
    });
    const askedAt = clock.mono();
    const at = dates.at(askedAt) ?? clock.now();
    const signed = sign({ method, url, headers, body }, { service, region, credentials, at });
    const stop = new AbortController();
    const timer = clock.setTimeout(
      () => stop.abort(new Error('no whole answer in time')),
      leftMs,
      'background',
    );
    try {
      const response = await options.fetch(url, {
        method,
        headers: signed,
        signal: stop.signal,
        redirect: 'error',
        ...(method === 'GET' || method === 'HEAD' || method === 'DELETE' ? {} : { body }),
      });
      dates.learn(response.headers.get('date'), askedAt, clock.mono());
      return {
        status: response.status,
        headers: response.headers,
        text: await readText(response),
        redact: (quoted: string) => withoutSecrets(quoted, credentials, signed.authorization ?? ''),
      };
    } finally {
      clock.clearTimeout(timer);
    }
  }
}

/** Everything semel stores is far smaller. */
const maxAnswerBytes = limits.messageBytes;

async function readText(response: Response): Promise<string> {
  const body = createByteCollector();
  for await (const part of response.body ?? []) {
    body.add(part);
    if (body.size > maxAnswerBytes)
      throw new AwsError('AnswerTooLarge', response.status, `it has more than ${maxAnswerBytes} bytes`);
  }
  return body.take().toString();
}

/** A service that refuses a signature quotes the request: its token, too. */
function withoutSecrets(
  text: string,
  { secretAccessKey, sessionToken }: AwsCredentials,
  authorization: string,
): string {
  const secrets = [secretAccessKey, sessionToken, authorization].filter((secret) => secret !== undefined);
  return secrets
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    .reduce((redacted, secret) => redacted.replaceAll(secret, '…'), text);
}

/** From a service's message, or from a page that a proxy sent instead. */
const maxMessage = 300;

function firstLine(text: string): string {
  const [line = ''] = text.slice(0, maxMessage + 1).split(/[\r\n]/, 1);
  return line.length > maxMessage ? `${line.slice(0, maxMessage)}…` : line;
}
