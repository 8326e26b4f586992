// A history that is over, and the stated limits that its checks go by.

import type { StoredRecord } from '../../src/store/store.ts';
import type { FinalCall } from './callers.ts';
import { type Faults, faultKinds } from './faults.ts';
import { type Attempt, type Effect, type KeyLog, type Log, quietAtOf } from './log.ts';

export interface Ended {
  readonly log: Log;
  readonly faults: Faults;
  readonly records: ReadonlyMap<string, StoredRecord | undefined>;
  readonly finals: readonly FinalCall[];
}

export const attemptAt = (known: KeyLog, fence: number) =>
  known.attempts.find((attempt) => attempt.fence === fence);

/** The stated limit: it landed, or was in the target's list, later than "not landed" has to wait for. */
export function outlives(ended: Ended, effect: Effect): boolean {
  const attempt = attemptAt(ended.log.keyLog(effect.key), effect.fence);
  if (attempt?.crossedAt === undefined) return false;
  const quietAt = isWaitedFor(ended, attempt, effect) ? effect.sentAt + attempt.networkMs : 0;
  return effect.seenAt >= Math.max(quietAt, quietAtOf(attempt));
}

/** A run that goes on after its timeout says so, for a while: as long as its process runs, and the store hears it. */
function isWaitedFor({ log, faults }: Ended, attempt: Attempt, { contract, sentAt }: Effect): boolean {
  if (attempt.ranOn !== 'timed out' || attempt.endedAt === undefined) return false;
  const { closedAt = Number.POSITIVE_INFINITY } = log.askers.get(attempt.token) ?? {};
  const untilMs = Math.max(contract.timeoutMs, 300_000);
  return sentAt < closedAt && sentAt < attempt.endedAt + untilMs && !counted(faults, unheard);
}

/** What may keep a report from the store, or make the record another's. */
const unheard = [
  'pause',
  'sleep',
  'block',
  'lost request',
  'lost reply',
  'delayed request',
  'old request',
  'outage before',
  'outage after',
  'store never answers',
  'store clock jump',
  'reboot',
] as const;

export const counted = ({ counts }: Faults, kinds: readonly (typeof faultKinds)[number][]) =>
  kinds.some((kind) => (counts[faultKinds.indexOf(kind)] as number) > 0);
