// A digest that is to go out weekly, started every day by a scheduler that knows nothing of weeks.

import { week } from '../../src/index.ts';
import { jobOf } from '../processes/child.ts';
import { movableClock } from '../processes/movable-clock.ts';
import { semelOf, send } from './actor.ts';
import type { Incident, Job } from './incident.ts';

const dayMs = 86_400_000;
const days = 40;

/** All three change their clocks in these forty days, on three different Sundays. */
const zones = ['Europe/Paris', 'America/New_York', 'Australia/Sydney'];
/** Half past midnight on a Monday in Sydney, and still Sunday elsewhere; where clocks change, the time of day moves. */
const startsAt = Date.UTC(2026, 2, 1, 13, 30);

export const incident: Incident = {
  title: 'A weekly digest started every day',
  file: './weekly-digest.ts',
  happened:
    'A scheduler starts the job every 24 hours for 40 days, for readers in three zones who want one digest per week.',
  answer: 'One per calendar week of each zone, also when the clocks change.',
  wanted: wantedDigests(),
  ways: [
    { name: 'bare', effects: days * zones.length, inDoubt: 0 },
    {
      name: 'semel',
      effects: wantedDigests(),
      inDoubt: 0,
    },
  ],
  play: async ({ act }) => {
    for (const zone of zones) await act({ zone });
  },
};

async function scheduler(job: Job & { zone: string }): Promise<void> {
  const clock = movableClock(startsAt - Date.now());
  for (let day = 0; day < days; day += 1, clock.advance(dayMs)) {
    if (job.way === 'bare') await send(job, `digest ${job.zone}`);
    else await once(job, clock);
  }
}

/** As a start of its own: nothing is remembered but what is in the ledger. */
async function once(job: Job & { zone: string }, clock: ReturnType<typeof movableClock>): Promise<void> {
  const semel = semelOf(job, 0, { clock });
  // contract
  const sendDigest = semel.tool({
    name: 'digest.send',
    effect: 'irreversible',
    per: week(job.zone),
    run: ({ readers }: { readers: string }) => send(job, `digest ${readers}`),
  });
  // end
  await sendDigest({ readers: job.zone });
  await semel.close();
}

/** Counted another way: the Mondays that begin the weeks, read off a calendar in each zone. */
function wantedDigests(): number {
  const weeks = zones.flatMap((zone) => {
    const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });
    return Array.from({ length: days }, (_, day) => {
      const date = new Date(`${format.format(startsAt + day * dayMs)}T12:00:00Z`);
      date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
      return `${zone} ${date.toISOString().slice(0, 10)}`;
    });
  });
  return new Set(weeks).size;
}

if (import.meta.main) await scheduler(jobOf());
