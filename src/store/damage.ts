// Damage of a single record, as opposed to the whole ledger: other records stay usable.

import { SemelError } from '../core/errors.ts';
import type { DamagedRecord, StoreEvent } from './store.ts';

const known = new WeakSet<object>();

export function damagedRecord(namespace: string, key: string, problem: string): SemelError {
  const error = new SemelError('STORE_UNSAFE', `The record ${key} of ${namespace} is damaged: ${problem}.`, {
    next: 'Nothing was run. Other records are not affected. Keep a copy of the ledger, and restore a backup (SQLite: `semel store restore`).',
    evidence: { namespace, key, problem },
  });
  known.add(error);
  return error;
}

export function isRecordDamage(error: unknown): error is SemelError {
  return typeof error === 'object' && error !== null && known.has(error);
}

/** Returns the damage of one record; any other error is thrown. */
export function readOrDamage<T>(read: () => T): T | DamagedRecord {
  try {
    return read();
  } catch (error) {
    if (!isRecordDamage(error)) throw error;
    return readDamage(error);
  }
}

export function readDamage(error: SemelError): DamagedRecord {
  return error.evidence as unknown as DamagedRecord;
}

export function isDamaged(row: object): row is DamagedRecord {
  return 'problem' in row;
}

/** No rule depends on the history, so an unreadable detail is only marked. */
export function parseDetail(text: string): StoreEvent['detail'] {
  try {
    return JSON.parse(text);
  } catch {
    return { damaged: true };
  }
}
