// What a model reads besides the value: that nothing was done again, or what went wrong and what to do next.

import { type ErrorValue, errorCodes, retryOf, type SemelError } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';

/** For a model that would otherwise assume that its call was executed as worded. */
export function noteForModel({ replayed, skipped, settledAt, drift }: Receipt): string | undefined {
  if (skipped) return 'The same call is already running; nothing was started again.';
  if (!replayed) return undefined;
  const wording =
    drift.length === 0
      ? ''
      : ` It was done as first worded: your ${formatList(drift)} ${drift.length === 1 ? 'was' : 'were'} not used.`;
  return `Already done${formatInstant(settledAt)}; nothing was sent again.${wording} To repeat on purpose, ask the user.`;
}

/**
 * An error that the model and its provider may read. It holds no command that would decide a doubt, no store address and no key: people find
 * those by the ref.
 */
export function errorForModel(error: SemelError, receipt: Receipt | undefined = error.receipt): ErrorValue {
  const { code, retriable, retryAfterMs, happened } = error;
  const ref = findRef(error, receipt);
  const message = code.startsWith('STORE_')
    ? 'The ledger of what was done cannot be used right now.'
    : happened;
  return {
    code,
    retriable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    message,
    correctiveAction: isProgramError(error) ? hopeless : adviceFor(error, ref, receipt?.executed === true),
    ...(ref === undefined ? {} : { evidence: { ref } }),
  };
}

/** As `semel resolve` takes it. Only the record's own ref is complete: if the attempt died, it includes when it was dispatched. */
function findRef({ evidence }: SemelError, receipt: Receipt | undefined): string | undefined {
  if (typeof evidence?.record === 'string') return evidence.record;
  return receipt === undefined || receipt.id === '' ? undefined : `${receipt.id}@${receipt.fence}`;
}

/** Never says that nothing happened if something may have: the model would do it another way, or tell the user so. */
function adviceFor(error: SemelError, ref: string | undefined, isExecuted: boolean): string {
  const { code, retriable, evidence, correctiveAction } = error;
  const inDoubt = `Do not do it again. Tell the user that it may have been done, and that a person has to check ${ref ?? 'it'}.`;
  switch (code) {
    case 'PARTIAL_SUCCESS':
      // Its steps say what landed, and are not repeated.
      return `${retriable ? goOn : inDoubt}${typeof evidence?.next === 'string' ? ` If the rest is not to be done: ${evidence.next}` : ''}`;
    case 'IN_DOUBT':
      return inDoubt;
    case 'RESULT_OMITTED':
      return 'It is done: do not do it again.';
    case 'FAILED':
      if (retriable)
        return 'It may have happened. Repeating it is harmless: the same call may be made again.';
      return evidence?.givenUp === true
        ? inDoubt
        : 'It was refused and did not happen. The same call would be refused: change it, or tell the user.';
    case 'INVALID_ARGS':
    case 'NOT_CANONICAL':
      return 'Nothing was done. Correct the arguments.';
    case 'ABORTED':
      // Says whether anything was started.
      return correctiveAction;
    case 'LEASE_LOST':
      return retriable ? undecided : inDoubt;
  }
  if (isExecuted) return undecided;
  switch (retryOf(code)) {
    case 'call':
      return 'It did not happen. The same call may be made again.';
    case 'delay':
      return 'This call did nothing. It may be made again in a while.';
    default:
      return hopeless;
  }
}

const goOn =
  'Part of it is done. Make the same call again, unchanged: it continues with the rest. If it fails again, tell the user what is done and what is not.';
const undecided = 'It may have been done. Make the same call again in a while to see how it ended.';
const hopeless = 'This call did nothing, and repeating it does not help. Tell the user what the error says.';

/** The program names the conversation, turn and run, so the model can do nothing about these errors. */
export function isProgramError({ code, path }: SemelError): boolean {
  return (
    code === 'NO_IDENTITY' ||
    (code === 'INVALID_ARGS' && (path === 'conversation' || path === 'turn' || path === 'run'))
  );
}

export const unrecordedNote = 'It is done, but that could not be recorded. Do not do it again.';

/** Whether a guarded tool returned an error instead of its value. */
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

function formatInstant(settledAt: Date | undefined): string {
  if (settledAt === undefined) return '';
  const instant = settledAt.toISOString();
  return ` on ${instant.slice(0, 10)} at ${instant.slice(11, 16)} UTC`;
}

function formatList(fields: readonly string[]): string {
  const named = fields.map((field) => `\`${field}\``);
  return named.length === 1 ? (named[0] as string) : `${named.slice(0, -1).join(', ')} and ${named.at(-1)}`;
}
