// Who holds a key of the command, and whether they live. A lease tells how long a holder on another machine blocks;
// here the kernel knows better: one that lives is left alone even past its lease, one that is gone is not waited for.

import { isSemelError } from '../../core/errors.ts';
import type { RecordInfo, Semel } from '../../semel/index.ts';
import { isAlive, shownOwner } from './liveness.ts';

export interface Holder {
  readonly record: RecordInfo;
  /** Its processes were seen. */
  readonly isSeen: boolean;
}

/**
 * Looks before a claim: undefined where nobody stands in the way. What is known to be dead is recorded as such, so that
 * the claim and everybody else see it. `record` is the last one that was there.
 */
export async function holderOf(
  semel: Semel,
  folder: string,
  key: string,
): Promise<{ readonly holder: Holder | undefined; readonly record: RecordInfo | undefined }> {
  for (;;) {
    const record = await semel.records.get(key);
    if (record?.status !== 'running') return { holder: undefined, record };
    const alive = isAlive(folder, record.owner);
    if (alive === true) return { holder: { record, isSeen: true }, record };
    if (alive === undefined) return { holder: record.lapsed ? undefined : { record, isSeen: false }, record };
    const died = semel.doubts.resolve(record.ref, 'died', { by: 'semel', note: 'its processes are gone' });
    await unlessStale(died);
  }
}

/** Somebody else was faster, or it has ended: whoever acts by what they saw looks again. */
export async function unlessStale(act: Promise<unknown>): Promise<void> {
  try {
    await act;
  } catch (error) {
    if (!isSemelError(error, 'RESOLVE_STALE')) throw error;
  }
}

/**
 * Nobody can claim a key, lose their guard and outlive their lease in less than this: leases of the command are longer.
 * A claim that took longer than this after the look may have taken over somebody who lives.
 */
export const lookHoldsMs = 5_000;
export const shortestLeaseMs = 10_000;

export function waitingFor({ record }: Holder): string {
  return `waiting for ${shownOwner(record.owner)}, running since ${record.updatedAt.toISOString()}`;
}
