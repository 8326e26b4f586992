// `classify: oneRequest`: the author promises that `run` makes one request and nothing else, so its error speaks for the
// whole attempt. Errors are recognised by their structure; no client is imported.

import {
  type Classified,
  classifyRequestError,
  classifyStatus,
  listCauses,
  mayHaveArrived,
  type RequestFate,
} from './classify.ts';

/** What semel saw of the try whose error is classified. */
export interface Seen {
  /** The fates of the requests that were made through `ctx.fetch`, except lookups. */
  readonly requests: readonly RequestFate[];
  /** How many HTTP requests `run` made with any client of `fetch`, undici or node:http, as far as they can be counted. */
  readonly sent: number;
  /** One of these was answered with a success (2xx). */
  readonly hasSuccess: boolean;
  /** What the last answer to one of these says, if it was not a lookup; 'ambiguous' if one of them got no answer. */
  readonly answer: RequestFate | undefined;
  /** What the contract's provider says about the error. */
  readonly provider: Classified | undefined;
}

const meaningOfFate: Readonly<Record<RequestFate, Classified | undefined>> = {
  'not sent': 'notLanded',
  denied: 'notLanded',
  refused: 'rejected',
  ambiguous: undefined,
  // An error after a success is about something else.
  landed: undefined,
};

/** For `classify`: `run` makes one request and nothing else, with a client that does not retry by itself. */
export function oneRequest(error: unknown, seen: Seen): Classified | undefined {
  // The last error says nothing about the requests before it.
  if (seen.requests.length > 1 || seen.sent > 1) return undefined;
  const [fate] = seen.requests;
  if (fate === 'landed') return undefined;
  if (seen.provider !== undefined) return seen.provider;
  // As above: whatever has a status now, it is not the answer to the request. Slack refuses with a 200.
  if (fate === undefined && seen.hasSuccess && !listParts(error).some(readSlack)) return undefined;
  // As above: after a 500, a status of 400 is what the program made of it, or the answer to a request that a client repeated.
  if (seen.answer === 'ambiguous') return undefined;
  return meaningOfFate[fate ?? readFate(error) ?? readWords(error, seen) ?? 'ambiguous'];
}

/** An error that says nothing (`HTTP 400`, in words) is about the answer that semel saw: there was no other request. */
function readWords(error: unknown, { answer }: Seen): RequestFate | undefined {
  // A code comes from a client whose requests are not seen (SMTP, gRPC), or from a call inside. The answer is to something else.
  return listParts(error).some(({ code }) => code != null) ? undefined : answer;
}

/** What an error of any known client says about its request, if it says anything. */
export function readFate(error: unknown): RequestFate | undefined {
  const chain = listParts(error);
  if (chain.some(isOneOfSeveral)) return 'ambiguous';
  const answers = chain.map(readAnswer);
  const known = chain
    .map((part, nth) => answers[nth] ?? readConnection(part))
    .filter((fate) => fate !== undefined);
  const innermost = known.at(-1);
  // A status that a program gave to what it caught is not the target's answer.
  const isDisputed = answers.some((fate) => fate !== undefined) && known.some((fate) => fate !== innermost);
  return isDisputed || innermost === 'landed' ? 'ambiguous' : innermost;
}

function readAnswer(part: Part): RequestFate | undefined {
  return readSlack(part) ?? readAws(part) ?? readStatus(part);
}

/** What a part says about the connection, if it does. */
function readConnection(part: Part): RequestFate | undefined {
  if (hasNotConnected(part) || classifyRequestError(part) === 'not sent') return 'not sent';
  const { name, code } = part;
  const isBrokenOff = name === 'TimeoutError' || name === 'AbortError' || part instanceof AggregateError;
  return isBrokenOff || (typeof code === 'string' && mayHaveArrived(code)) ? 'ambiguous' : undefined;
}

type Part = Readonly<Record<string, unknown>>;

/** The error, its causes, and what SDKs wrap it in: `detail` (Stripe), `original` (Slack). */
function listParts(error: unknown): readonly Part[] {
  if (!isObject(error)) return [];
  const chain: readonly object[] = error instanceof Error ? listCauses(error) : [error];
  const inner = chain.flatMap((each) => [(each as Part).detail, (each as Part).original]);
  return [...chain, ...inner.flatMap((each) => (each instanceof Error ? listCauses(each) : []))] as Part[];
}

function isObject(value: unknown): value is Part {
  return typeof value === 'object' && value !== null;
}

function readField(value: unknown, ...path: readonly string[]): unknown {
  let inner = value;
  for (const field of path)
    inner = isObject(inner) || typeof inner === 'function' ? Reflect.get(inner, field) : undefined;
  return inner;
}

function readNumber(value: unknown, ...path: readonly string[]): number {
  const found = readField(value, ...path);
  return typeof found === 'number' ? found : 0;
}

/** The error itself shows that it was not the first request: the client retried, or followed a redirect. */
function isOneOfSeveral(part: Part): boolean {
  return (
    // axios-retry, gaxios, got, Octokit
    readNumber(part, 'config', 'axios-retry', 'retryCount') > 0 ||
    readNumber(part, 'config', 'retryConfig', 'currentRetryAttempt') > 0 ||
    readNumber(part, 'request', 'retryCount') > 0 ||
    readNumber(part, 'request', 'request', 'retryCount') > 0 ||
    // AWS, p-retry
    readNumber(part, '$metadata', 'attempts') > 1 ||
    readNumber(part, 'attemptNumber') > 1 ||
    // fetch and ky, got, follow-redirects
    readField(part, 'redirected') === true ||
    readField(part, 'response', 'redirected') === true ||
    readNumber(part, 'response', 'redirectUrls', 'length') > 0 ||
    readNumber(part, 'request', '_redirectable', '_redirectCount') > 0
  );
}

/** Where clients put the status of the answer. */
function readStatus(part: Part): RequestFate | undefined {
  const response = readField(part, 'response');
  const statuses = [
    readField(response, 'status'),
    readField(response, 'statusCode'),
    part.statusCode,
    part.status,
    // SendGrid
    isObject(response) ? part.code : undefined,
  ];
  const status = statuses.find((each) => typeof each === 'number' && each >= 100 && each <= 599);
  return status === undefined ? undefined : classifyStatus(status as number);
}

/** AWS throttles with a 400 and a named code. */
function readAws(part: Part): RequestFate | undefined {
  const status = readField(part, '$metadata', 'httpStatusCode');
  if (typeof status !== 'number') return undefined;
  const name = String(part.name);
  if (/timeout/i.test(name)) return 'ambiguous';
  const isForNow = /throttl|too ?many ?requests|limit ?exceeded|slow ?down|expired ?token/i.test(name);
  return isForNow && status < 500 ? 'denied' : classifyStatus(status);
}

/** Slack answers 200 to what it refuses. */
function readSlack(part: Part): RequestFate | undefined {
  if (part.code === 'slack_webapi_rate_limited_error') return 'denied';
  if (part.code !== 'slack_webapi_platform_error') return undefined;
  const word = String(readField(part, 'data', 'error'));
  // Some of it may have been done, by its own documentation.
  if (/fatal|internal|timeout|unavailable|unknown/.test(word)) return 'ambiguous';
  return /rate_?limited|auth|token|scope|account_inactive/.test(word) ? 'denied' : 'refused';
}

/** By the phase in which a client gave up. */
function hasNotConnected(part: Part): boolean {
  // got: its TimeoutError names the phase.
  const isEarly = ['lookup', 'connect', 'secureConnect'].includes(part.event as string);
  return part.name === 'TimeoutError' && isEarly;
}
