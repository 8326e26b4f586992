// What a model is told besides the value: that nothing was done again, or what went wrong and what to do now.

import { type ErrorValue, errorCodes } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';

/** One line where a model would otherwise think that its call was executed as it was made. */
export function lineFor({ replayed, skipped, settledAt, drift }: Receipt): string | undefined {
  if (skipped) return 'The same call is under way elsewhere; nothing was started again.';
  if (!replayed) return undefined;
  const wording =
    drift.length === 0 ? '' : ` It was done as first worded: your ${listed(drift)} ${are(drift)} not used.`;
  return `Already done${when(settledAt)}; nothing was sent again.${wording} To repeat on purpose, ask the user.`;
}

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
