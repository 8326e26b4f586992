// Which process holds a key, and whether it is alive. For a holder on another machine only its lease counts. On this
// machine the kernel knows: a live holder keeps its claim even past its lease, a dead one is not waited for.

import { isSemelError } from '../../core/errors.ts';
import { engineOf, type RecordInfo, type Semel } from '../../semel/index.ts';
import { isProcessGone } from '../../store/process-life.ts';
import { minLeaseMs } from '../definition.ts';
import { isOwnerAlive, shownOwner } from './liveness.ts';

export interface Holder {
  readonly record: RecordInfo;
  /** Its processes are known to be alive. */
  readonly isAlive: boolean;
}

/**
 * The live holder of a key; undefined if it can be claimed. A holder known to be dead is recorded as died, so that the
 * claim sees it too. `record` is the one last read.
 */
export async function findHolder(
  semel: Semel,
  folder: string,
  key: string,
): Promise<{ readonly holder: Holder | undefined; readonly record: RecordInfo | undefined }> {
  for (;;) {
    const record = await semel.records.get(key);
    if (record?.status !== 'running') return { holder: undefined, record };
    const alive = isOwnerAlive(folder, record.owner);
    if (alive === true) return { holder: { record, isAlive: true }, record };
    if (alive === undefined) {
      // Without a pipe, like a job of the library.
      if (isProcessGone(record.owner) && (await engineOf(semel).endIfDead(key))) continue;
      return { holder: record.lapsed ? undefined : { record, isAlive: false }, record };
    }
    const died = semel.doubts.resolve(record.ref, 'died', { by: 'semel', note: 'its processes are gone' });
    await ignoreStale(died);
  }
}

/** The record changed since it was read: not an error, the caller reads it again. */
export async function ignoreStale(act: Promise<unknown>): Promise<void> {
  try {
    await act;
  } catch (error) {
    if (!isSemelError(error, 'RESOLVE_STALE')) throw error;
  }
}

/**
 * Leases of jobs and commands are longer than this (`minLeaseMs`), so no process can claim a key, lose its guard and outlive its lease in
 * less. A claim that came later after the look may have taken over a process that is alive.
 */
export const maxLookAgeMs = minLeaseMs / 2;

export function describeWait({ record }: Holder): string {
  const since = record.lastDispatchedAt;
  return `waiting for ${shownOwner(record.owner)}${since === undefined ? '' : `, running since ${since.toISOString()}`}`;
}
