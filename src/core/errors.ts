// The closed list of error codes, and the one error class. A code says who may try again; a message says
// what happened and what to do next. Nothing here decides anything.

import type { Receipt } from './receipt.ts';

/** Who may try again: the same call at once, the same call after a delay, a person, or nobody. */
export type Retry = 'call' | 'delay' | 'person' | 'nobody';

interface CodeFacts {
  readonly retry: Retry;
  /** What to do next, where the thrower has nothing more precise to say. */
  readonly next: string;
}

const facts = {
  INVALID_ARGS: { retry: 'nobody', next: 'Correct the arguments and call again.' },
  NOT_CANONICAL: { retry: 'nobody', next: 'Pass plain JSON values, or name the field in `volatile`.' },
  NOT_PERMITTED: {
    retry: 'person',
    next: 'Ask the person who grants permissions, or pass `permissions` with the call.',
  },
  VERSION_MISMATCH: {
    retry: 'nobody',
    next: 'Request the deployed version, or deploy the requested one.',
  },
  NO_IDENTITY: {
    retry: 'nobody',
    next: 'Wrap the call in `semel.within({ conversation, turn }, …)` or pass them as options.',
  },
  KEY_CONFLICT: { retry: 'nobody', next: 'Use another key for another intent.' },
  IN_FLIGHT: { retry: 'delay', next: 'Call again later: the same call is being executed right now.' },
  REENTRANT: { retry: 'nobody', next: 'Do not call a tool from inside its own run with the same identity.' },
  IN_DOUBT: { retry: 'person', next: 'Check whether it landed, then `semel resolve` it.' },
  LEASE_LOST: { retry: 'delay', next: 'Call again: the ledger knows who holds the key now.' },
  NOT_LANDED: { retry: 'call', next: 'It definitely did not land: the same call may be tried again.' },
  FAILED: {
    retry: 'person',
    next: 'The target refused it. Change the request, or wait for the failure window to end.',
  },
  POISON: {
    retry: 'person',
    next: 'Find out what kills the process, then `semel.records.reopen` the record.',
  },
  PARTIAL_SUCCESS: { retry: 'person', next: 'Complete the rest by hand, then `semel resolve` the record.' },
  UNRECORDED: { retry: 'nobody', next: 'It is done: do not repeat it. The value is on the error.' },
  RESULT_OMITTED: {
    retry: 'nobody',
    next: 'It is done: do not do it again. Fetch the value from the target, by its reference where there is one.',
  },
  EXPIRED: { retry: 'nobody', next: 'It is too late for this call. Make a new one if it is still wanted.' },
  STEP_CHANGED: { retry: 'person', next: 'Run the program as it was, or accept its new steps.' },
  RESOLVE_STALE: { retry: 'person', next: 'Look at the record as it is now, then decide again.' },
  STORE_UNAVAILABLE: { retry: 'delay', next: 'Nothing was run. Call again when the store answers.' },
  STORE_UNSAFE: { retry: 'person', next: 'Move the ledger to a store that is safe, or restore a backup.' },
  STORE_MOVED: { retry: 'person', next: 'Point this process at the new store.' },
  CONTRACT_INVALID: { retry: 'nobody', next: 'Correct the contract.' },
  ABORTED: { retry: 'call', next: 'Nothing was run. Call again if it is still wanted.' },
} as const satisfies Record<string, CodeFacts>;

export type ErrorCode = keyof typeof facts;

export const errorCodes = Object.keys(facts) as ErrorCode[];

/** Who may try again after an error of this code. */
export function retryOf(code: ErrorCode): Retry {
  return facts[code].retry;
}

export interface ErrorDetails {
  /** What to do next, in one sentence; the code's own sentence unless given. */
  readonly next?: string;
  /** Where in the input it went wrong, for example `args.amount.minor`. */
  readonly path?: string;
  readonly retryAfterMs?: number;
  /** What is known: key, attempts, dispatched at, the thrown error. Plain data, safe to show. */
  readonly evidence?: Readonly<Record<string, unknown>>;
  /** UNRECORDED and PARTIAL_SUCCESS carry what the effect returned. */
  readonly value?: unknown;
  readonly cause?: unknown;
  readonly receipt?: Receipt;
  /** Overrides the code's own answer to "may the same call be tried again?". */
  readonly retriable?: boolean;
}

/** An error as a value, for a model or a program that must not get an exception. */
export interface ErrorValue {
  readonly code: ErrorCode;
  readonly retriable: boolean;
  readonly retryAfterMs?: number;
  readonly message: string;
  readonly correctiveAction: string;
  readonly evidence?: Readonly<Record<string, unknown>>;
}

export class SemelError extends Error {
  override readonly name = 'SemelError';
  readonly code: ErrorCode;
  readonly retriable: boolean;
  /** The first part of the message; `correctiveAction` is the second. */
  readonly happened: string;
  readonly correctiveAction: string;
  readonly retryAfterMs: number | undefined;
  readonly path: string | undefined;
  readonly evidence: Readonly<Record<string, unknown>> | undefined;
  readonly value: unknown;
  /** The command that explains the code, from the installed package. */
  readonly docs: string;
  /** Receipt of the call that failed. */
  readonly receipt: Receipt | undefined;

  constructor(code: ErrorCode, happened: string, details: ErrorDetails = {}) {
    const next = details.next ?? facts[code].next;
    super(`${happened} ${next}`, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.happened = happened;
    this.correctiveAction = next;
    this.retriable = details.retriable ?? (facts[code].retry === 'call' || facts[code].retry === 'delay');
    this.retryAfterMs = details.retryAfterMs;
    this.path = details.path;
    this.evidence = details.evidence;
    this.value = details.value;
    this.docs = `npx semel explain ${code}`;
    this.receipt = details.receipt;
  }

  toJSON(): ErrorValue {
    return {
      code: this.code,
      retriable: this.retriable,
      ...(this.retryAfterMs === undefined ? {} : { retryAfterMs: this.retryAfterMs }),
      message: this.message,
      correctiveAction: this.correctiveAction,
      ...(this.evidence === undefined ? {} : { evidence: this.evidence }),
    };
  }
}

/** The same error as one caller hears it: callers who share a call share its ending, not its receipt. */
export function withReceipt(error: SemelError, receipt: Receipt): SemelError {
  const { code, happened, correctiveAction, stack: _, ...details } = error;
  // With a stack of its own: where the call was made is what its caller wants to see.
  const told = new SemelError(code, happened, {
    ...(details as ErrorDetails),
    cause: error.cause,
    next: correctiveAction,
    receipt,
  });
  return told;
}

export function isSemelError(error: unknown, code?: ErrorCode): error is SemelError {
  try {
    return error instanceof SemelError && (code === undefined || error.code === code);
  } catch {
    // A revoked proxy is not an error of semel.
    return false;
  }
}
