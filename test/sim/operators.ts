// The person at the ledger: looks at a record and at the world, takes their time, then decides by what they saw.

import { SemelError } from '../../src/core/errors.ts';
import type { Resolution } from '../../src/semel/records/decisions.ts';
import type { RecordInfo } from '../../src/semel/records/record-info.ts';
import type { Sim } from './sim.ts';
import { epoch } from './store-time.ts';
import { seen } from './tools.ts';
import type { Worker } from './worker.ts';

/** Longer than any wait for quiet that is worth it. */
const patienceMs = 10 * 60_000;

export async function operate(sim: Sim, worker: Worker, key: string, thorough: boolean): Promise<void> {
  const { chance, scheduler, faults, log } = sim;
  try {
    const info = await worker.records.get(key);
    if (info === undefined) return;
    const lookedAt = scheduler.now;
    const holder = log.keyLog(key).attempts.findLast(({ fence }) => fence === info.fence)?.token ?? '';
    if (info.status === 'running' && log.askers.get(holder)?.alive === false && info.fence % 2 === 0) {
      await worker.doubts.resolve(info.ref, 'died');
      return;
    }
    const wild = !thorough && chance.happens(0.3);
    const forget = async () => {
      const { generation } = await worker.records.forget(key);
      log.acts.push({ worker, key, generation, at: scheduler.now });
    };
    const think = () =>
      scheduler.pause(chance.between(50, chance.happens(0.5) ? 2_000 : 30_000), worker, 'operator thinks');

    if (!wild && !info.inDoubt && !(info.status === 'released' && info.doubt)) {
      await think();
      if (info.status === 'failed' && chance.happens(0.6)) await worker.records.reopen(key);
      else if (info.status === 'succeeded' && chance.happens(0.25) && faults.active) await forget();
      return;
    }
    if (wild && chance.happens(0.35)) {
      await think();
      await (chance.happens(0.5) ? forget() : worker.records.reopen(key));
      return;
    }
    const force = wild && chance.happens(0.4);
    const resolution = await decision(sim, worker, info, thorough, force);
    if (resolution === undefined) return;
    await worker.doubts.resolve(info.ref, resolution, { force });
    const { attempts } = log.keyLog(key);
    const unseen = attempts.find(
      ({ fence, crossedAt }) => fence <= info.fence && (crossedAt ?? 0) > lookedAt,
    );
    if (unseen !== undefined)
      log.violated(
        'a verdict speaks for what was looked at',
        `${key}: looked at ${lookedAt}, f${unseen.fence} went on at ${unseen.crossedAt}`,
      );
  } catch (error) {
    // Refused, stale, or the store is away: they will look again.
    if (!(error instanceof SemelError)) throw error;
  }
}

async function decision(
  { chance, scheduler, world, log }: Sim,
  worker: Worker,
  info: RecordInfo,
  thorough: boolean,
  force: boolean,
): Promise<Resolution | undefined> {
  const { generation, key } = info;
  const plan = log.keyLog(key).wanted.get(generation)?.asked.plan;
  const look = () => (plan === undefined ? 'a part' : seen(world, plan, key, generation));
  const inFlightMs =
    info.inFlightUntil === undefined ? 0 : info.inFlightUntil.getTime() - epoch - scheduler.now;
  const canWait = inFlightMs <= patienceMs;
  // A hasty one looks and says so at once, long before it can be known: only the ledger can tell them. (When a
  // person looked is theirs to know: who looks too early and speaks later is not protected against.)
  if (!thorough && inFlightMs > 5_000 && chance.happens(0.25)) {
    const early = look();
    return early === 'nothing' ? 'notLanded' : typeof early === 'string' ? undefined : { landed: early };
  }
  // "Not landed" can be seen only once nothing can be on its way any more: they look again then.
  if (canWait && (thorough || chance.happens(0.7)))
    await scheduler.pause(Math.max(0, inFlightMs), worker, 'operator waits');
  const isQuiet = !Number.isNaN(inFlightMs) && (info.inFlightUntil?.getTime() ?? 0) - epoch <= scheduler.now;
  const found = look();
  await scheduler.pause(chance.between(50, chance.happens(0.6) ? 2_000 : 30_000), worker, 'operator thinks');
  if (found !== 'nothing') {
    if (found === 'a part' || chance.happens(0.1))
      return chance.happens(0.5) ? 'runAgain' : { abandon: 'nobody knows' };
    return { landed: found };
  }
  if (isQuiet || force) {
    if (chance.happens(0.75)) return 'notLanded';
  }
  return chance.happens(0.6) ? 'runAgain' : { abandon: 'nobody knows' };
}
