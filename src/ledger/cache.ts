// Settled records of this process, so that a replay needs no store at all. Settled records are immutable until
// they expire; what another process forgets or reopens is noticed after `maxAgeMs`.

import { keyMap } from '../core/key-map.ts';
import type { StoredRecord } from '../store/store.ts';

export interface CacheLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

interface Entry {
  readonly record: StoredRecord;
  readonly until: number;
  readonly bytes: number;
}

export interface RecordCache {
  get(namespace: string, key: string, mono: number): StoredRecord | undefined;
  /** Its age is counted from when it was asked for: the answer may have come late. */
  put(record: StoredRecord, askedAt: number): void;
  /** Nothing that was asked for before now is kept any more: its answer may tell of what was. */
  drop(namespace: string, key: string, mono: number): void;
}

export function createCache({ maxBytes, maxAgeMs }: CacheLimits): RecordCache {
  const entries = keyMap<Entry>();
  let bytes = 0;
  /** The last act: rare enough to be remembered for all keys at once. */
  let droppedAt = Number.NEGATIVE_INFINITY;

  function remove(namespace: string, key: string): void {
    const entry = entries.get(namespace, key);
    if (entry === undefined) return;
    bytes -= entry.bytes;
    entries.delete(namespace, key);
  }

  return {
    get(namespace, key, mono) {
      const entry = entries.get(namespace, key);
      if (entry === undefined) return undefined;
      if (mono < entry.until) return entry.record;
      remove(namespace, key);
      return undefined;
    },
    put(record, askedAt) {
      if (record.status !== 'succeeded' && record.status !== 'failed') return;
      const livesMs =
        record.expiresAt === null ? maxAgeMs : Math.min(maxAgeMs, record.expiresAt - record.readAt);
      if (livesMs <= 0 || maxBytes === 0 || askedAt <= droppedAt) return;
      const { namespace, key } = record;
      remove(namespace, key);
      const size = 500 + (record.result?.text?.length ?? 0) + (record.args?.length ?? 0);
      entries.set(namespace, key, { record, until: askedAt + livesMs, bytes: size });
      bytes += size;
      if (bytes <= maxBytes) return;
      for (const { record: oldest } of entries.values()) {
        remove(oldest.namespace, oldest.key);
        if (bytes <= maxBytes) return;
      }
    },
    drop(namespace, key, mono) {
      droppedAt = mono;
      remove(namespace, key);
    },
  };
}
