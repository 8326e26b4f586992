// What it means that a person delivers a row again.

import type { OutboxRow } from '../store/outbox.ts';

/**
 * Its effect was started, and the record that knew what became of it is gone. As long as there is a record, that decides: in
 * doubt, it is not run again.
 */
export function mayLandTwice(
  { generation }: Pick<OutboxRow, 'generation'>,
  record: { readonly generation: number; readonly expired: boolean } | undefined,
): boolean {
  if (generation === null) return false;
  return record === undefined || record.expired || record.generation !== generation;
}
