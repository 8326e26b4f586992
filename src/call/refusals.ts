// The errors of calls that may not go on: one sentence about what happened, one about what to do.

import type { Contract } from '../core/contract/contract.ts';
import { formatDuration } from '../core/contract/duration.ts';
import { type ErrorDetails, SemelError } from '../core/errors.ts';
import { withoutMark } from '../store/process-life.ts';
import type { StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { collectEvidence } from './receipt.ts';

export function closedError(): SemelError {
  return new SemelError('STORE_UNAVAILABLE', 'This Semel instance is closed.', {
    next: 'Create a new one.',
    retriable: false,
  });
}

export function conflictError({ tool }: Call, record: StoredRecord): SemelError {
  const open = describeOpen(record);
  return new SemelError(
    'KEY_CONFLICT',
    `${tool.contract.name}: this key was already used with other identity args${open.words}.`,
    { evidence: { ...collectEvidence(record), ...open.evidence } },
  );
}

/** The other call may be an earlier start of the same work: whether that landed is open then. */
function describeOpen({ status, lapsed, inDoubt, doubtFence }: StoredRecord) {
  if (status === 'running' && !lapsed)
    return { words: ', by a call that is being executed', evidence: { open: 'running' } };
  if (inDoubt || (status === 'released' && doubtFence !== null))
    return { words: ', by a call that may have landed', evidence: { open: 'in doubt' } };
  return { words: '', evidence: {} };
}

/** Equal by its identity, but not in what must be the same. */
export function strictError({ tool }: Call, record: StoredRecord, fields: readonly string[]): SemelError {
  const named = fields.map((field) => `\`${field}\``).join(', ');
  const open = describeOpen(record);
  return new SemelError(
    'KEY_CONFLICT',
    `${tool.contract.name}: an equal call was made with another ${named}${open.words}.`,
    {
      path: fields[0] ?? '',
      next: 'Nothing was run. Pass the same value, or make it part of the identity if it is another intent.',
      evidence: { ...collectEvidence(record), fields, ...open.evidence },
    },
  );
}

/** Says only that the record exists: not when it was made, by which process, or how it ended. */
export function foreignError({ tool, identity }: Call, { status, lapsed }: StoredRecord): SemelError {
  const { name } = tool.contract;
  // If the other execution does not land, this caller may run, so it should try again later.
  if (status === 'running' && !lapsed)
    return new SemelError('IN_FLIGHT', `${name} is being executed for another caller.`, {
      retryAfterMs: 1_000,
      next: 'Nothing was run by this call. Call again later.',
    });
  if (identity.weak === true)
    return new SemelError(
      'NO_IDENTITY',
      `${name}: the same call was made before, and semel cannot tell whether by the same user.`,
      {
        path: 'caller',
        next: 'Nothing was run. Pass `conversation` and `turn`, or `caller`, to `semel.within`.',
      },
    );
  return new SemelError('NOT_PERMITTED', `${name}: another caller has already made this call.`, {
    path: 'caller',
    next: 'Nothing was run, and the result belongs to that caller. If callers may share results, set `share: true` in the contract.',
  });
}

/** The generation that a waiter waited for is gone. */
export function goneError({ tool }: Call): SemelError {
  return new SemelError(
    'EXPIRED',
    `${tool.contract.name}: the execution that this call waited for has ended, and its record was removed.`,
    { next: 'Nothing was run. Call again if it is still wanted.' },
  );
}

export function tooLateError({ tool, notAfter }: Call): SemelError {
  const limit = new Date(notAfter ?? 0).toISOString();
  return new SemelError('EXPIRED', `${tool.contract.name} must not start after ${limit} (\`notAfter\`).`);
}

export function reentrantError({ tool }: Call): SemelError {
  return new SemelError(
    'REENTRANT',
    `${tool.contract.name} was called from inside its own run, with the same identity.`,
  );
}

/** Two runs that call each other: the later call is refused. */
export function deadlockError({ tool }: Call, outer: Call): SemelError {
  const { name } = tool.contract;
  const other = outer.tool.contract.name;
  return new SemelError(
    'REENTRANT',
    `${name} was called from inside the run of ${other}, and would wait for that run: neither could continue.`,
    { next: 'Do not let two tools call each other with the same identities.' },
  );
}

/** Without a record if the execution has not claimed yet. */
export function inFlightError(
  { tool }: Call,
  record: StoredRecord | undefined,
  outerContract?: string | undefined,
): SemelError {
  const by = record === undefined ? 'this process' : withoutMark(record.owner);
  return new SemelError('IN_FLIGHT', `${tool.contract.name} is being executed by ${by}.`, {
    ...(outerContract === undefined ? {} : { next: describeMutualWait(tool.contract.name, outerContract) }),
    retryAfterMs: Math.max(100, Math.ceil(record?.leaseLeftMs ?? 0)),
    ...(record === undefined ? {} : { evidence: collectEvidence(record) }),
  });
}

/** For a nested call that waits for another process: whether that one waits for this process cannot be seen. */
export function describeMutualWait(name: string, outerContract: string): string {
  return `Call again later. ${name} is called from inside the run of ${outerContract}: if the other run of ${name} calls ${outerContract} in turn, each waits for the other. Do not let two tools call each other.`;
}

export function takenOverError({ tool }: Call, cause: unknown): SemelError {
  return new SemelError(
    'LEASE_LOST',
    `${tool.contract.name}: another worker took this call over while it ran.`,
    { cause },
  );
}

/** Before anything was dispatched. */
export function abortedError({ tool, signal }: Call): SemelError {
  return new SemelError('ABORTED', `${tool.contract.name}: the caller gave up.`, { cause: signal?.reason });
}

/** After the dispatch, while others wait, or while another process runs it: the execution goes on without this caller. */
export function leftBehindError({ tool, signal }: Call, record: StoredRecord | undefined): SemelError {
  return new SemelError('ABORTED', `${tool.contract.name}: the caller gave up while it was being executed.`, {
    cause: signal?.reason,
    next: 'It may land. Call again to learn how it ended.',
    evidence: { ...(record && collectEvidence(record)), mayLand: true },
  });
}

export function interruptedError(): SemelError {
  return new SemelError('ABORTED', 'interrupted: the process is closing.');
}

/** A repeatable effect threw. */
export function repeatableError(name: string, message: string, details: ErrorDetails): SemelError {
  return new SemelError('FAILED', `${name} threw: ${message}.`, {
    ...details,
    retriable: true,
    next: 'It is declared harmless to repeat: call again.',
  });
}

/** The same kind of reason that `AbortSignal.timeout` gives. */
export function timeoutError({ name, timeoutMs }: Contract): DOMException {
  return new DOMException(
    `${name} ran longer than its timeout of ${formatDuration(timeoutMs)}`,
    'TimeoutError',
  );
}

/** The claim was kept until its lease ends, on purpose. */
export function leftError({ tool }: Call): SemelError {
  return new SemelError('IN_FLIGHT', `${tool.contract.name}: its claim is held until its lease ends.`);
}
