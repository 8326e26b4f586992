// The storm: real workers on one ledger, killed and stopped at random, perhaps its server too; a target in a process of
// its own, somebody who looks after the doubts; then calm, every caller comes back, and the checker reads all logs.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createSemel } from '../../../src/index.ts';
import { chanceOf } from '../../processes/chance.ts';
import { newScratch } from '../../processes/scratch.ts';
import {
  type Effort,
  effortOf,
  type Logs,
  parseLines,
  type Violation,
  type WorkEntry,
} from '../../support/checker/index.ts';
import { startEffectServer } from '../../support/effect-server/index.ts';
import { targets } from '../tools.ts';
import { calm } from './calm.ts';
import { startCrew } from './crew.ts';
import { type FaultCounts, type FaultName, faultsOf } from './faults.ts';
import { cellStoreNames, type PlaceName, startLedger } from './ledger.ts';
import { moodsOf } from './moods.ts';
import { somebody } from './person.ts';
import { monotonicMs, namespace, policies } from './terms.ts';
import { checkAll, countBy, notOnce } from './verdict.ts';

export interface StormOptions {
  readonly store: PlaceName;
  readonly seed: number;
  readonly workers: number;
  /** The storm is over when it has done so many of each, or so long. */
  readonly faults: FaultCounts;
  readonly maxMs: number;
  /** It goes on after its last fault until so much has landed. */
  readonly leastEffects?: number;
  /** Mean time between two faults. */
  readonly faultEveryMs: number;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly seconds: number;
  readonly faults: Readonly<Record<FaultName, number>>;
  readonly effects: number;
  readonly decided: number;
}

export interface StormReport {
  readonly faults: Readonly<Record<FaultName, number>>;
  readonly place: string;
  readonly seconds: number;
  readonly intents: number;
  readonly effects: number;
  /** Intents that must land once and did not, each in one sentence. */
  readonly notOnce: readonly string[];
  readonly violations: readonly Violation[];
  readonly effort: Effort;
  /** How many of each kind the store noted. */
  readonly events: Readonly<Record<string, number>>;
  /** Calls that were refused or left without a record, by code. */
  readonly codes: Readonly<Record<string, number>>;
  readonly logs: Logs;
}

export async function storm(options: StormOptions): Promise<StormReport> {
  using scratch = newScratch('storm');
  const movesClock = (options.faults.clock ?? 0) > 0;
  await using ledger = await startLedger(options.store, scratch.path('ledger.db'), {
    movableClock: movesClock,
  });
  await using server = await startEffectServer({ log: scratch.path('effects.jsonl'), targets: targets() });
  const chance = chanceOf(options.seed);
  const since = monotonicMs();
  const crew = startCrew({
    size: options.workers,
    chance,
    job: { ledger: ledger.address, url: server.url, lanes: 12, storm: options.seed, since },
    logOf: (worker) => scratch.path(`${worker}.work.jsonl`),
    clockOf:
      (options.faults.workerClock ?? 0) === 0
        ? undefined
        : (worker) => {
            const folder = scratch.path(`${worker}.clock`);
            mkdirSync(folder);
            return folder;
          },
  });
  const faults = faultsOf(options.faults, crew, ledger.server, chance);
  const watching = createSemel({ store: ledger.address, namespace, onWarning: () => undefined });
  const person = somebody(watching, server.effects, chanceOf(options.seed + 1));
  const moods = moodsOf(server, chanceOf(options.seed + 2));
  let decided = 0;
  // A list of doubts reads every record of such a store: there the person goes by what callers were told.
  const isExpensive = cellStoreNames.some((name) => name === options.store);
  const told = new Set<string>();

  try {
    const passedMs = () => monotonicMs() - since;
    const isEnough = () => faults.isDone && server.effects().length >= (options.leastEffects ?? 0);
    const isOver = () => isEnough() || passedMs() >= options.maxMs;
    const looking = (async () => {
      while (!isOver()) {
        for (const key of crew.newDoubts()) told.add(key);
        decided += await person.look(isExpensive ? told : undefined);
        await moods.change();
        const effects = server.effects().length;
        options.onProgress?.({ seconds: passedMs() / 1000, faults: faults.counts, effects, decided });
        await delay(1_000);
      }
    })();
    // If a fault fails, the targets are closed under it: that error is not the one to report.
    looking.catch(() => undefined);
    while (!isOver()) {
      await delay(chance.between(0, 2 * options.faultEveryMs));
      if (!faults.isDone) await faults.next();
    }
    await looking;
    const died = await crew.finish();
    await watching.close();
    await moods.end();
    const seconds = passedMs() / 1000;

    // So far that nothing of the storm can seem to lie ahead.
    if (movesClock) ledger.server?.moveClock(30 * 86_400_000);
    const after = await calm(
      ledger,
      server.url,
      server.effects,
      scratch.path('after.work.jsonl'),
      options.seed,
    );
    const logs: Logs = {
      work: [...workOf(scratch.folder), ...died],
      records: after.records,
      events: after.events,
      effects: server.effects(),
      policies,
      // By a clock that was set forward, "not landed" is believed too early.
      requestsOutliveQuiet: movesClock,
    };
    return {
      faults: faults.counts,
      place: ledger.place,
      seconds,
      intents: after.intents,
      effects: logs.effects.length,
      notOnce: notOnce(server.effects(), after, movesClock),
      violations: checkAll(logs),
      effort: effortOf(logs),
      events: countBy(after.events, ({ type }) => type),
      codes: countBy(
        logs.work.flatMap((entry) => (entry.kind === 'ended' && entry.code !== null ? [entry.code] : [])),
        (code) => code,
      ),
      logs,
    };
  } finally {
    await crew.disband();
    await watching.close();
  }
}

function workOf(folder: string): WorkEntry[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.work.jsonl'))
    .flatMap((name) => parseLines<WorkEntry>(readFileSync(join(folder, name), 'utf8')));
}
