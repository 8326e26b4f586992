// A record in lists: one word for its state, one name, one instant. Derived, never stored.

import { formatDuration } from '../../core/contract/duration.ts';
import { commandField } from '../../core/contract/words.ts';
import { contractName } from '../../jobs/index.ts';
import type { RecordInfo } from '../../semel/index.ts';
import { oneLine, relative } from './print.ts';
import type { Cell } from './table.ts';

export type State = 'running' | 'in doubt' | 'abandoned' | 'succeeded' | 'failed' | 'released';

export function stateOf(record: RecordInfo): State {
  const { inDoubt, abandoned, status } = record;
  if (inDoubt || status === 'unknown') return 'in doubt';
  if (isFailedRun(record)) return 'failed';
  return abandoned ? 'abandoned' : status;
}

/** A failed job may run again, so its record is released; in lists it still counts as a failure. */
export function isFailedRun({ contract, status, error }: RecordInfo): boolean {
  return status === 'released' && error !== undefined && contract.startsWith('run.');
}

/** A job's lock, or the order of its steps: never needs a decision. A tool of the user's may be called `lock.door`. */
export function isJobLock({ contract, args }: RecordInfo): boolean {
  if (contract.startsWith('step-order.')) return true;
  const job = (args as { job?: unknown } | null | undefined)?.job;
  return typeof job === 'string' && contract === contractName('lock', job);
}

/** A step of a run: the run's next attempt runs it again, so it never needs a decision. */
export function isStep({ contract, args, run }: RecordInfo): boolean {
  const step = (args as { step?: unknown } | null | undefined)?.step;
  return run !== undefined && typeof step === 'string' && contract === contractName('step', step);
}

/** The contracts that a name may mean: a tool, or a job. */
export function contractsOf(name: string): readonly string[] {
  return [...new Set([name, contractName('run', name)])];
}

const styles: Partial<Record<State, NonNullable<Cell['style']>>> = {
  running: 'cyan',
  'in doubt': 'yellow',
  abandoned: 'yellow',
  succeeded: 'green',
  failed: 'red',
};

/** `isDead`: its processes are known to be gone, so it ends when the next call notices. */
export function stateCell(record: RecordInfo, isDead = false): Cell {
  const state = stateOf(record);
  if (isDead) return { text: 'running, dead', style: 'yellow' };
  const text = record.expired ? `${state}, expired` : state;
  const style = styles[state];
  return style === undefined ? { text } : { text, style };
}

/** A job and its slot, a tool and its run or the caller's own key, or the contract alone; never a digest. */
export function nameOf({ contract, key, args, run }: RecordInfo): string {
  const slot = contract.startsWith('run.') ? (args as { slot?: unknown } | undefined)?.slot : undefined;
  if (typeof slot === 'string') return `${contract} ${slot}`;
  const [, jobRun] = /^(.+@.+)~\w+$/.exec(run ?? '') ?? [];
  if (jobRun !== undefined) return `${contract} ${jobRun}`;
  const [period = ''] = key.slice(contract.length + 1).split('/');
  if (period.startsWith('=')) return `${contract} ${decoded(period.slice(1)).replace(callerDigest, '')}`;
  return /^\d{4}-/.test(period) ? `${contract} ${period}` : contract;
}

/** In the key of an Idempotency-Key, after the one that the client chose. */
const callerDigest = / [0-9a-z]{32}$/;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function argsText({ args }: RecordInfo, maxLength?: number): string {
  return oneLine(args, maxLength);
}

export function driftText(fields: readonly string[]): string {
  return fields.map((field) => (field === commandField ? 'the command line' : field)).join(', ');
}

/** When it got its state: dispatched, settled or released. Renewing a lease does not count. */
export function sinceOf(record: RecordInfo): Date {
  if (record.inDoubt) return record.lastDispatchedAt ?? record.updatedAt;
  if (record.lapsed) return record.updatedAt;
  if (record.status === 'running') return record.lastDispatchedAt ?? record.createdAt;
  return record.settledAt ?? record.updatedAt;
}

export function ageMs(record: RecordInfo, now = Date.now()): number {
  return Math.max(0, now - sinceOf(record).getTime());
}

/** A process that was killed leaves no error. */
export function errorOf({ error }: RecordInfo): string {
  return error?.message ?? 'the process that ran it exited without reporting a result';
}

/** To follow the state: `running for 4m`, `succeeded 4m ago`. */
export function ageText(record: RecordInfo, now = Date.now()): string {
  const isOngoing = record.status === 'running' || record.inDoubt;
  return isOngoing
    ? `for ${formatDuration(wholeSeconds(ageMs(record, now)))}`
    : relative(sinceOf(record), now);
}

function wholeSeconds(ms: number): number {
  return ms < 1000 ? ms : Math.round(ms / 1000) * 1000;
}

/** The provider's id, and whether it is known that the effect landed. */
export function remoteRefText({ remoteRef, status, inDoubt }: RecordInfo): string | undefined {
  if (remoteRef === undefined) return undefined;
  const isOpen = inDoubt || status === 'running';
  return isOpen ? `${remoteRef} (sent, not confirmed)` : remoteRef;
}
