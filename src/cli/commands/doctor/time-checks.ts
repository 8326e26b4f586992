// Times of a contract that do not fit: leases that end under a living attempt, windows longer than the provider's.

import { formatDuration } from '../../../core/contract/duration.ts';
import { type Check, count, examples, latest } from './finding.ts';
import { byContract, type RecordSeen } from './seen.ts';

/**
 * An attempt was taken over as dead and then reported: it was alive. Only a takeover after a lapse counts; an attempt that
 * ended as unknown may report more at any time.
 */
export const leaseTooShort: Check<'LEASE_TOO_SHORT'> = {
  id: 'LEASE_TOO_SHORT',
  finds: ({ records }) =>
    byContract(records).flatMap(({ namespace, contract, records: members }) => {
      const zombies = members.filter((record) => livedOn(record).length > 0);
      const at = zombies.flatMap(livedOn);
      if (at.length === 0) return [];
      return [
        {
          namespace,
          contract,
          found: `${count(at.length, 'attempt')} went on after ${at.length === 1 ? 'its lease was' : 'their leases were'} over and somebody else had taken ${at.length === 1 ? 'its' : 'their'} place.`,
          next: 'Lengthen `lease`, and do not block the event loop for so long (a renewal is due every third of it). A machine that sleeps or is stopped does the same.',
          records: examples(zombies),
          lastAt: latest(at),
        },
      ];
    }),
};

const lateReports: readonly string[] = ['fenced', 'lateNews', 'duplicate', 'contradiction'];

/** When attempts that had lapsed and were taken over reported after all: by the order of history, not by clocks. */
function livedOn({ events }: RecordSeen): readonly number[] {
  return events.flatMap((takeover, nth) => {
    if (takeover.type !== 'takeover' || takeover.detail.lapsed !== true) return [];
    const report = events
      .slice(nth + 1)
      .find(
        ({ type, generation, detail }) =>
          lateReports.includes(type) &&
          generation === takeover.generation &&
          detail.fence === takeover.detail.fence,
      );
    return report === undefined ? [] : [report.at];
  });
}

/** A contract's terms are known to history where a doubt was taken under them. */
export const windowTooLong: Check<'WINDOW_TOO_LONG'> = {
  id: 'WINDOW_TOO_LONG',
  finds: ({ records }) =>
    byContract(records).flatMap(({ namespace, contract, records: members }) => {
      const taken = members.filter(({ events }) => events.some((event) => termsOf(event) !== undefined));
      // The terms of today: the contract may have been mended since.
      const last = taken
        .flatMap(({ events }) => events.flatMap((event) => termsOf(event) ?? []))
        .toSorted((a, b) => a.at - b.at)
        .at(-1);
      if (last === undefined || last.windowMs <= last.rerunWithinMs + marginMs) return [];
      return [
        {
          namespace,
          contract,
          found: `It is remembered for ${formatDuration(last.windowMs)}, but its provider’s key counts for ${formatDuration(last.rerunWithinMs)} only: of what is in doubt in between, \`verify\` alone can decide.`,
          next: 'Shorten `window` to the provider’s, or make sure that `verify` also finds old effects.',
          records: examples(taken),
          lastAt: new Date(last.at),
        },
      ];
    }),
};

/** A contract takes its timeout off the provider's window, since a request may be in flight that long: that is not a gap. */
const marginMs = 3_600_000;

interface Terms {
  readonly at: number;
  readonly windowMs: number;
  readonly rerunWithinMs: number;
}

function termsOf({ at, type, detail }: RecordSeen['events'][number]): Terms | undefined {
  const { windowMs, rerunWithinMs } = detail;
  if (type !== 'takeover' || typeof windowMs !== 'number' || typeof rerunWithinMs !== 'number')
    return undefined;
  return { at, windowMs, rerunWithinMs };
}
