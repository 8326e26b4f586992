// Damage of a single record, told apart from damage of the ledger: the others are not affected, and go on.

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

/** What is wrong with one record is part of the answer; anything else is not. */
export function readOrDamage<T>(read: () => T): T | DamagedRecord {
  try {
    return read();
  } catch (error) {
    if (!isRecordDamage(error)) throw error;
    return readDamage(error);
  }
}

/** In a list, instead of the record. */
export function readDamage(error: SemelError): DamagedRecord {
  return error.evidence as unknown as DamagedRecord;
}

export function isDamaged(row: object): row is DamagedRecord {
  return 'problem' in row;
}

/** History is told, never decided by: what cannot be read of it is said so. */
export function parseDetail(text: string): StoreEvent['detail'] {
  try {
    return JSON.parse(text);
  } catch {
    return { damaged: true };
  }
}
