// Which records changed since the last look. Remembers running and recently changed records only.

import type { StoredRecord } from '../../../store/store.ts';

export interface Follower {
  /** Starts a look; all records follow. */
  look(): void;
  isNews(record: Seen): boolean;
}

export type Seen = Pick<
  StoredRecord,
  'key' | 'status' | 'generation' | 'fence' | 'lapsed' | 'dispatched' | 'expiresAt' | 'updatedAt' | 'readAt'
>;

/** Longer than a transaction, or a time server's correction of a clock. */
const overlapMs = 120_000;

export function createFollower(): Follower {
  /** Earlier changes were seen by the last look. */
  let horizon = Number.NEGATIVE_INFINITY;
  let beganAt: number | undefined;
  let known = new Map<string, string>();
  let next = new Map<string, string>();

  return {
    look() {
      horizon = beganAt === undefined ? Number.NEGATIVE_INFINITY : beganAt - overlapMs;
      beganAt = undefined;
      [known, next] = [next, new Map()];
    },
    isNews(record) {
      const { key, updatedAt, status } = record;
      beganAt ??= record.readAt;
      const before = known.get(key);
      const stamp = stampOf(record);
      // A running record lapses without a write.
      if (status === 'running' || updatedAt >= beganAt - overlapMs) next.set(key, stamp);
      return before === undefined ? updatedAt >= horizon : before !== stamp;
    },
  };
}

function stampOf({ status, generation, fence, lapsed, dispatched, expiresAt }: Seen): string {
  return [status, generation, fence, lapsed, dispatched, expiresAt].join(' ');
}
