// Jobs over HTTP: a client that gets the slot of a job runs it, with steps, and reports by its tickets as for any call.

import type { Ticket } from '../../call/index.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import { recordId } from '../../core/key/key.ts';
import {
  cron,
  type DetachedClaim,
  detachJob,
  detachStep,
  type JobOptions,
  periodNamed,
  release,
  shownOwner,
} from '../../jobs/library/index.ts';
import type { Semel } from '../../semel/index.ts';
import type { Context } from '../endpoint.ts';
import {
  anything,
  document,
  instant,
  integer,
  list,
  object,
  oneOf,
  type Read,
  text,
} from '../exchange/schema.ts';
import { beginBody, ownerOf, toAnswer, whileWaiting } from './calls.ts';
import type { Tickets } from './ticket.ts';

const { token, worker, waitMs } = beginBody.fields;

const calendar = ['minute', 'hour', 'day', 'week', 'month'] as const;

export const beginJobBody = object(
  { job: text({ max: 200, about: 'The name of the job.' }) },
  {
    per: oneOf([...calendar, 'ever'], { about: 'Each slot is done once. Default: each instant `at`.' }),
    cron: text({ max: 200, about: 'A schedule, instead of `per`: the slot is its latest instant.' }),
    tz: text({ max: 100, about: 'The time zone of the slots. Default: UTC.' }),
    at: instant({ about: 'The scheduled instant. Default: now.' }),
    ids: document({ type: 'object', description: 'Separate runs, for example per customer.' }, readIds),
    again: text({ max: 500, about: 'Why a slot that is done is run once more.' }),
    lease: integer({ min: 10_000, max: 86_400_000, about: 'In milliseconds. Default: 60 s.' }),
    window: integer({ min: 0, max: 10 * 366 * 86_400_000, about: 'In milliseconds. Default: 30 days.' }),
    afterFailure: oneOf(['rerun', 'hold'], { about: 'What a failure means. Default: rerun.' }),
    token,
    worker,
  },
);

export const jobStepBody = object(
  {
    attempt: text({ max: 100_000, about: 'The `attempt` of the answer to /v1/jobs/begin.' }),
    kind: oneOf(['step', 'once'], { about: 'once: an effect that must not be repeated.' }),
    name: text({ max: 200, about: 'The name of the step.' }),
  },
  {
    args: anything({
      about: 'What the step depends on; of once: its id, for an effect that lands once ever.',
    }),
    in: list(text({ max: 200 }), { max: 20, about: 'The names of the steps around it.' }),
    token,
    worker,
    waitMs,
  },
);

export async function beginJob(body: Read<typeof beginJobBody>, context: Context): Promise<object> {
  const { job, at, ids, again, lease, window, afterFailure } = body;
  const options = {
    ...given({ per: perOf(body), lease, window, afterFailure }),
    job,
    run: given({ at, ids, again }),
  };
  const claimant = { owner: ownerOf(body, context), token: body.token };
  const { semel, tickets } = context.space;
  const begun = await detachJob(semel, options, claimant);
  const { slot } = begun;
  const about = { slot: slot.name, date: slot.date, zone: slot.zone, at: new Date(slot.at) };
  if (begun.kind === 'done') {
    const { record, value } = begun;
    return { outcome: 'skipped', ...about, value, doneAt: record.settledAt, record: record.id };
  }
  if (begun.kind === 'busy') {
    const record = begun.holder?.record;
    return {
      outcome: 'busy',
      ...about,
      ...(record === undefined ? {} : { holder: shownOwner(record.owner) }),
    };
  }
  const { lock, run, text: name } = begun;
  return {
    outcome: 'execute',
    ...about,
    lock: await ticketOf(lock, tickets),
    attempt: await ticketOf(run, tickets),
    run: name,
    ...(slot.periodsAt === undefined ? {} : { periodsAt: new Date(slot.periodsAt) }),
    number: run.record.attempts,
    fence: run.record.fence,
    leaseMs: lock.tool.kind === 'lock' ? lock.tool.leaseMs : undefined,
  };
}

export async function beginJobStep(body: Read<typeof jobStepBody>, context: Context): Promise<object> {
  const { semel, tickets } = context.space;
  const { job, ticket } = await tickets.read(body.attempt);
  if (job?.kind !== 'run' || ticket === undefined)
    throw new SemelError('INVALID_ARGS', '`attempt` is not a run of a job.', {
      path: 'attempt',
      next: 'Send the `attempt` of the answer to /v1/jobs/begin, unchanged.',
    });
  await checkHeld(semel, job, ticket);
  const claimant = { owner: ownerOf(body, context), token: body.token };
  const claimed = await whileWaiting(body.waitMs, context, (wait) =>
    detachStep(semel, job, body, claimant, wait),
  );
  if (!('ticket' in claimed)) return toAnswer(claimed);
  if (body.waitMs !== undefined)
    await checkHeld(semel, job, ticket).catch(async (error: unknown) => {
      // A client that has left may have sent its request again, and have got the claim: then it may be at work.
      if (isSemelError(error, 'LEASE_LOST') && !context.hasLeft) await release(semel, claimed);
      throw error;
    });
  const { attempts: number, fence, key: recordKey } = claimed.record;
  const leaseMs = 'leaseMs' in claimed.tool ? claimed.tool.leaseMs : 60_000;
  return {
    outcome: 'execute',
    attempt: await ticketOf(claimed, tickets),
    claimed: true,
    number,
    fence,
    recordKey,
    recordId: recordId(semel.namespace, recordKey),
    leaseMs,
  };
}

/** A program that was taken over must start nothing more. */
async function checkHeld(semel: Semel, { job }: { readonly job: string }, ticket: Ticket): Promise<void> {
  const record = await semel.records.get(ticket.key);
  if (record?.status !== 'running' || record.fence !== ticket.fence)
    throw new SemelError('LEASE_LOST', `${job}: another worker has taken this run over.`);
  // The lock's is over too, and the run of another slot may have it.
  if (record.lapsed)
    throw new SemelError('LEASE_LOST', `${job}: its lease is over.`, {
      next: 'Renew `lock` and `attempt`, and go on if both are held.',
    });
}

function ticketOf({ tool, ticket }: DetachedClaim, tickets: Tickets): Promise<string> {
  return tickets.write({ tool: tool.kind, policy: undefined, job: tool, ticket });
}

function perOf({ per, cron: schedule, tz = 'UTC' }: Read<typeof beginJobBody>): JobOptions['per'] {
  if (schedule !== undefined) return cron(schedule, tz);
  return per === undefined || per === 'ever' ? per : periodNamed(per, tz);
}

function readIds(value: object): Readonly<Record<string, string | number>> {
  return value as Readonly<Record<string, string | number>>;
}

function given<Given extends object>(
  fields: Given,
): { [Name in keyof Given]?: Exclude<Given[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
