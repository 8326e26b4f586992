// What a model is told besides the value: that nothing was done again, or what went wrong and what to do now.

import { type ErrorCode, type ErrorValue, errorCodes, retryOf, type SemelError } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';

/** One line where a model would otherwise think that its call was executed as it was made. */
export function lineFor({ replayed, skipped, settledAt, drift }: Receipt): string | undefined {
  if (skipped) return 'The same call is under way elsewhere; nothing was started again.';
  if (!replayed) return undefined;
  const wording =
    drift.length === 0 ? '' : ` It was done as first worded: your ${listed(drift)} ${are(drift)} not used.`;
  return `Already done${when(settledAt)}; nothing was sent again.${wording} To repeat on purpose, ask the user.`;
}

/**
 * An error as a model may read it, and the provider of that model. No command that would decide a doubt, no address of a store, no
 * key: those are for people, who find them by the ref.
 */
export function toldError(error: SemelError, receipt: Receipt | undefined = error.receipt): ErrorValue {
  const { code, retriable, retryAfterMs, happened } = error;
  const ref = receipt === undefined || receipt.id === '' ? undefined : `${receipt.id}@${receipt.fence}`;
  const message = code.startsWith('STORE_')
    ? 'The ledger of what was done cannot be used right now.'
    : happened;
  return {
    code,
    retriable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    message,
    correctiveAction: nextFor(code, ref),
    ...(ref === undefined ? {} : { evidence: { ref } }),
  };
}

function nextFor(code: ErrorCode, ref: string | undefined): string {
  switch (code) {
    case 'IN_DOUBT':
    case 'PARTIAL_SUCCESS':
      return `Do not do it once more. Tell the user that it may have been done, and that a person has to check ${ref ?? 'it'}.`;
    // Given up, or taken over by another process: perhaps after the request left.
    case 'ABORTED':
    case 'LEASE_LOST':
      return 'It may have been done, or be under way. Do not do it in another way: the same call tells, in a while, how it ended.';
    case 'RESULT_OMITTED':
      return 'It is done: do not do it again.';
    case 'FAILED':
      return 'It was refused and did not happen. The same call would be refused: change it, or tell the user.';
    case 'INVALID_ARGS':
    case 'NOT_CANONICAL':
      return 'Nothing was done. Correct the arguments.';
  }
  switch (retryOf(code)) {
    case 'call':
      return 'It did not happen. The same call may be made again.';
    case 'delay':
      return 'Nothing was done by this call. It may be made again in a while.';
    default:
      return 'Nothing was done by this call, and to repeat it does not help. Tell the user what it says.';
  }
}

/** What is done and could not be written down. */
export const unrecordedLine = 'It is done, but that could not be recorded. Do not do it again.';

/** A result of a guarded tool that is no value: nothing landed, or nobody knows. */
export function isToolError(output: unknown): output is ErrorValue {
  if (typeof output !== 'object' || output === null) return false;
  const { code, message, correctiveAction, retriable } = output as Partial<Record<keyof ErrorValue, unknown>>;
  return (
    (errorCodes as readonly unknown[]).includes(code) &&
    typeof message === 'string' &&
    typeof correctiveAction === 'string' &&
    typeof retriable === 'boolean'
  );
}

function when(settledAt: Date | undefined): string {
  if (settledAt === undefined) return '';
  const instant = settledAt.toISOString();
  return ` on ${instant.slice(0, 10)} at ${instant.slice(11, 16)} UTC`;
}

function listed(fields: readonly string[]): string {
  const named = fields.map((field) => `\`${field}\``);
  return named.length === 1 ? (named[0] as string) : `${named.slice(0, -1).join(', ')} and ${named.at(-1)}`;
}

function are(fields: readonly string[]): string {
  return fields.length === 1 ? 'was' : 'were';
}
