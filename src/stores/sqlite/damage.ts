// Damage of a single record, told apart from damage of the ledger: the others are not affected, and go on.

import type { SemelError } from '../../core/errors.ts';
import type { DamagedRecord } from '../../store/store.ts';
import { storeError } from './failure.ts';

const known = new WeakSet<object>();

export function damagedRecord(namespace: string, key: string, problem: string): SemelError {
  const error = storeError('STORE_UNSAFE', `The record ${key} of ${namespace} is damaged: ${problem}.`, {
    next: 'Nothing was run. Other records are not affected. Keep a copy of the ledger, and restore a backup (`semel store restore`).',
    evidence: { namespace, key, problem },
  });
  known.add(error);
  return error;
}

export function isRecordDamage(error: unknown): error is SemelError {
  return typeof error === 'object' && error !== null && known.has(error);
}

/** In a list, instead of the record. */
export type Damaged = DamagedRecord;

/** What is wrong with one record is part of the answer; anything else is not. */
export function orDamaged<T>(read: () => T): T | Damaged {
  try {
    return read();
  } catch (error) {
    if (!isRecordDamage(error)) throw error;
    return error.evidence as unknown as Damaged;
  }
}

export function isDamaged(row: object): row is Damaged {
  return 'problem' in row;
}
