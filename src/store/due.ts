// From when on retention should look at a row.

import type { Row } from './store.ts';

/**
 * Never later than it can go. Of what is running it depends on nothing that a renewal changes, and of what was sent it
 * is a success that is foreseen.
 */
export function dueAt({ status, expiresAt, createdAt, retention, dispatched }: Row): number | null {
  if (status !== 'running') return expiresAt;
  if (retention === null) return createdAt;
  if (!dispatched) return createdAt + retention.failureWindowMs;
  return Math.min(
    Number.MAX_SAFE_INTEGER,
    Math.max(createdAt, retention.periodEndsAt ?? 0) + retention.windowMs,
  );
}
