// The jobs of a namespace, and what became of their slots in the last days. Keys of slots begin with their day in UTC, so that each
// day of a job is one short read; they are shown on the day of their own zone.

import type { Page, StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { object, type Read, text } from '../exchange/schema.ts';
import { listContracts } from './contracts.ts';
import { countMissed, dateOf, isLateStart, type SlotTime, slotTimeOf } from './job-slots.ts';
import { createQueue } from './queue.ts';

export const jobsQuery = object(
  {},
  {
    days: text({ max: 2, pattern: /^[1-9]\d?$/, example: '14', about: 'How many, at most 31. Default: 14.' }),
  },
);

interface JobSlotInfo {
  readonly key: string;
  readonly slot: string;
  readonly state: string;
  readonly startedAt: Date;
  readonly settledAt: Date | undefined;
  readonly attempts: number;
  /** It began when its slot was over. */
  readonly isLate: boolean;
}

const maxJobs = 50;
const maxSlotsPerDay = 100;
/** Maximum per answer. */
const maxSlots = 20_000;
/** Read at once: the record of a slot may have a megabyte, of which a line is kept. */
const slotsAtOnce = 10;
const daysAtOnce = 4;
/** Requests, of which each would read a thousand days at once. */
const looks = createQueue(2);

export async function listJobs(query: Read<typeof jobsQuery>, context: Context): Promise<object> {
  return (await looks(() => readJobs(query, context), context)) ?? {};
}

async function readJobs(query: Read<typeof jobsQuery>, context: Context): Promise<object> {
  const days = Math.min(31, Number(query.days ?? '14'));
  const now = Date.now();
  const names = await listContracts(context.space, 'run.', maxJobs);
  const left = { slots: maxSlots };
  // The local day of a slot is the one of UTC, or the one before or after it.
  const read = Array.from({ length: days + 3 }, (_, n) => dateOf(now + (1 - (days + 2 - n)) * dayMs));
  const jobs: Job[] = [];
  for (const contract of names.slice(0, maxJobs)) jobs.push(await readJob(context, contract, read, left));
  // East of Greenwich it may be tomorrow.
  const tomorrow = dateOf(now + dayMs);
  const isAhead = jobs.some(({ slots }) => slots.some(({ date }) => date === tomorrow));
  const dates = Array.from({ length: days }, (_, n) =>
    dateOf(now - (days - 1 - n - (isAhead ? 1 : 0)) * dayMs),
  );
  return {
    dates,
    jobs: jobs.map((job) => showJob(job, dates, now)),
    ...(names.length > maxJobs ? { isCut: true } : {}),
  };
}

const dayMs = 86_400_000;

interface Job {
  readonly contract: string;
  readonly job: string;
  readonly per: string | undefined;
  readonly slots: readonly (JobSlotInfo & { readonly date: string; readonly time: SlotTime | undefined })[];
  /** The oldest slot that the ledger knows. */
  readonly first: SlotTime | undefined;
  /** Local days of which not all slots were read. */
  readonly cut: ReadonlySet<string>;
}

function showJob(
  { contract, job, per, slots, first, cut }: Job,
  dates: readonly string[],
  now: number,
): object {
  const times = slots.flatMap(({ time }) => (time === undefined ? [] : [time]));
  const missed = cut.size > 0 ? new Map<string, number>() : countMissed(per, dates, times, first, now);
  const days = dates.map((date) => ({
    date,
    slots: slots.filter((slot) => slot.date === date).map(({ date: _, time: __, ...slot }) => slot),
    missed: missed.get(date) ?? 0,
    ...(cut.has(date) ? { isCut: true } : {}),
  }));
  return { contract, job, per, days };
}

async function readJob(
  context: Context,
  contract: string,
  dates: readonly string[],
  left: { slots: number },
): Promise<Job> {
  const { signal } = context;
  const { store, namespace } = context.space.engine;
  let per: string | undefined;
  let job = contract.slice('run.'.length);
  const toSlot = (record: StoredRecord, utc: string): Job['slots'][number] => {
    const args = parse(record.args);
    const unit = typeof args.per === 'string' ? args.per : undefined;
    per = unit ?? per;
    if (typeof args.job === 'string') job = args.job;
    const time = slotTimeOf(contract, record.key, args.slot);
    return {
      key: record.key,
      slot: typeof args.slot === 'string' ? args.slot : record.key,
      state: stateOf(record),
      startedAt: new Date(record.createdAt),
      settledAt: record.settledAt === null ? undefined : new Date(record.settledAt),
      attempts: record.attempts,
      isLate: time !== undefined && isLateStart(unit, time, record.createdAt),
      date: time === undefined ? utc : dateOf(time.wall),
      time,
    };
  };
  const cut = new Set<string>();
  const read = async (utc: string) => {
    const slots: Job['slots'][number][] = [];
    let after: string | undefined;
    do {
      if (left.slots <= 0 || signal.aborted) {
        cut.add(utc);
        return slots;
      }
      const page: Page<StoredRecord> = await store.list({
        ...{ namespace, contract, prefix: `${contract}/${utc}`, limit: slotsAtOnce },
        ...(after === undefined ? {} : { after }),
      });
      for (const record of page.items) slots.push(toSlot(record, utc));
      left.slots -= page.items.length;
      after = page.next;
    } while (after !== undefined && slots.length < maxSlotsPerDay);
    if (after !== undefined) for (const { date } of slots) cut.add(date);
    return slots;
  };
  const oldest = (await store.list({ namespace, contract, limit: 1 })).items.map((record) =>
    toSlot(record, ''),
  );
  const slots: Job['slots'][number][] = [];
  for (let from = 0; from < dates.length; from += daysAtOnce)
    for (const those of await Promise.all(dates.slice(from, from + daysAtOnce).map(read)))
      slots.push(...those);
  return { contract, job, per, slots, first: oldest[0]?.time, cut };
}

/** As `semel ls` says it: a failed run may run again, and still counts as a failure. */
function stateOf({ inDoubt, lapsed, status, error }: StoredRecord): string {
  if (inDoubt || status === 'unknown') return 'in doubt';
  if (status === 'released' && error !== null) return 'failed';
  return lapsed ? 'abandoned' : status;
}

function parse(text: string | null): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
