// The jobs of a namespace, and what became of their slots in the last days. Keys of slots begin with their day, so that each day
// of a job is one short read.

import type { Page, StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { object, type Read, text } from '../exchange/schema.ts';
import { listContracts } from './contracts.ts';
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
  /** It began after its slot was over. */
  readonly isLate: boolean;
}

const maxJobs = 50;
const maxSlotsPerDay = 100;
/** Of one answer. */
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
  const today = Date.now();
  const dates = Array.from({ length: days }, (_, n) => dateOf(today - (days - 1 - n) * dayMs));
  const names = await listContracts(context.space, 'run.', maxJobs);
  const jobs: object[] = [];
  const left = { slots: maxSlots };
  for (const contract of names.slice(0, maxJobs)) jobs.push(await readJob(context, contract, dates, left));
  return { dates, jobs, ...(names.length > maxJobs ? { isCut: true } : {}) };
}

const dayMs = 86_400_000;
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10);

async function readJob(
  context: Context,
  contract: string,
  dates: readonly string[],
  left: { slots: number },
): Promise<object> {
  const { signal } = context;
  const { store, namespace } = context.space.engine;
  let per: string | undefined;
  let job = contract.slice('run.'.length);
  const toSlot = (record: StoredRecord, date: string): JobSlotInfo => {
    const args = parse(record.args);
    if (typeof args.per === 'string') per = args.per;
    if (typeof args.job === 'string') job = args.job;
    return {
      key: record.key,
      slot: typeof args.slot === 'string' ? args.slot : record.key,
      state: stateOf(record),
      startedAt: new Date(record.createdAt),
      settledAt: record.settledAt === null ? undefined : new Date(record.settledAt),
      attempts: record.attempts,
      isLate: args.per === 'day' && dateOf(record.createdAt) > date,
    };
  };
  const read = async (date: string) => {
    const slots: JobSlotInfo[] = [];
    let after: string | undefined;
    do {
      if (left.slots <= 0 || signal.aborted) return { date, slots, isCut: true };
      const page: Page<StoredRecord> = await store.list({
        ...{ namespace, contract, prefix: `${contract}/${date}`, limit: slotsAtOnce },
        ...(after === undefined ? {} : { after }),
      });
      for (const record of page.items) slots.push(toSlot(record, date));
      left.slots -= page.items.length;
      after = page.next;
    } while (after !== undefined && slots.length < maxSlotsPerDay);
    return { date, slots, ...(after === undefined ? {} : { isCut: true }) };
  };
  const byDay: object[] = [];
  for (let from = 0; from < dates.length; from += daysAtOnce)
    byDay.push(...(await Promise.all(dates.slice(from, from + daysAtOnce).map(read))));
  return { contract, job, per, days: byDay };
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
