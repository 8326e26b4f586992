// What an error of a provider means: of its SDK, or one that carries its response. An error of anybody else is not
// recognised, since it says nothing of the request to this provider.

import {
  type Classified,
  classifyRequestError,
  classifyStatus,
  listCauses,
  type RequestFate,
} from '../core/contract/classify.ts';

/** What a provider answered, as far as an error tells. */
export interface Answer {
  /** Undefined: there was no answer. */
  readonly status: number | undefined;
  /** Codes and types in the error. */
  readonly words: readonly unknown[];
  /** What kept the answer away, where the error does not have it as its `cause`. */
  readonly cause?: unknown;
}

interface Knowing {
  readonly hosts: readonly string[];
  readonly sdk?: (error: object) => Answer | undefined;
  readonly inFlight?: { readonly code?: string };
  readonly mismatch?: { readonly code?: string };
  readonly meanings?: Readonly<Record<string, Classified>>;
}

const meaningOfFate: Readonly<Record<RequestFate, Classified | undefined>> = {
  'not sent': 'notLanded',
  denied: 'notLanded',
  refused: 'rejected',
  ambiguous: 'maybeLanded',
  // An error after a 2xx is about something else.
  landed: undefined,
};

export function classifierOf({ hosts, sdk, inFlight, mismatch, meanings = {} }: Knowing) {
  // Both speak of another request under the same key: it may be at work, or may have landed.
  const ofAnother = [inFlight?.code, mismatch?.code].filter((code) => code !== undefined);

  return (error: unknown): Classified | undefined => {
    if (typeof error !== 'object' || error === null) return undefined;
    const answer = sdk?.(error) ?? answerIn(error, hosts);
    if (answer === undefined) return undefined;
    const words = answer.words.filter((word) => typeof word === 'string');
    if (words.some((word) => ofAnother.includes(word))) return 'maybeLanded';
    const known = words.find((word) => Object.hasOwn(meanings, word));
    if (known !== undefined) return meanings[known];
    if (answer.status !== undefined) return meaningOfFate[classifyStatus(answer.status)];
    return classifyRequestError(answer.cause ?? error) === 'not sent' ? 'notLanded' : undefined;
  };
}

/** A response that was thrown, or that an error carries, from one of the provider's hosts. */
function answerIn(error: object, hosts: readonly string[]): Answer | undefined {
  const { response = error } = error as { response?: unknown };
  const { status, url, data } = (response ?? {}) as { status?: unknown; url?: unknown; data?: unknown };
  if (typeof status !== 'number' || typeof url !== 'string' || !URL.canParse(url)) return undefined;
  const { host, hostname } = new URL(url);
  const isOwn = hosts.some((each) => each === host || each === hostname || hostname.endsWith(`.${each}`));
  return isOwn ? { status, words: wordsIn(data) } : undefined;
}

/** Where APIs put the code of an error: at the top (Adyen as `errorCode`), or inside `error` or the first of `errors`. */
export function wordsIn(body: unknown): readonly unknown[] {
  if (typeof body !== 'object' || body === null) return [];
  const { code, errorCode, type, name, error, errors } = body as Record<string, unknown>;
  const inner = Array.isArray(errors) ? errors[0] : undefined;
  return [code, errorCode, type, name, error, ...[error, inner].flatMap((each) => own(each))];
}

function own(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  const { code, type } = value as Record<string, unknown>;
  return [code, type];
}

/** The first of an error and its causes that a reader recognises. */
export function inCauses(error: object, read: (each: object) => Answer | undefined): Answer | undefined {
  for (const each of error instanceof Error ? listCauses(error) : [error]) {
    const answer = read(each);
    if (answer !== undefined) return answer;
  }
  return undefined;
}
