// The kill storm: real workers on one ledger, killed and stopped at random, a target in a process of its own, somebody
// who looks after the doubts; then calm, every caller comes back, and the checker reads all logs.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createSemel, type Semel } from '../../../src/index.ts';
import type { StoredRecord, StoreEvent } from '../../../src/store/index.ts';
import { sqliteStore } from '../../../src/stores/sqlite/index.ts';
import {
  check,
  type Effort,
  effortOf,
  type Logs,
  parseLines,
  type Violation,
  type WorkEntry,
} from '../../../src/testing/checker/index.ts';
import { type LandedEffect, startEffectServer } from '../../../src/testing/effect-server/index.ts';
import { chanceOf } from '../../processes/chance.ts';
import { hookedStore } from '../../processes/hooked-store.ts';
import { movableClock } from '../../processes/movable-clock.ts';
import { newScratch } from '../../processes/scratch.ts';
import { targets, toolOf } from '../tools.ts';
import { startCrew } from './crew.ts';
import { moodsOf } from './moods.ts';
import { somebody } from './person.ts';
import { contracts, namespace, policies, terms } from './terms.ts';
import { openWorkLog } from './work-log.ts';

export interface StormOptions {
  readonly seed: number;
  readonly workers: number;
  /** The storm is over after so many kills and stops, or so long. */
  readonly kills: number;
  readonly stops: number;
  readonly maxMs: number;
  /** Mean time between two faults. */
  readonly faultEveryMs: number;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly seconds: number;
  readonly kills: number;
  readonly stops: number;
  readonly effects: number;
  readonly decided: number;
}

export interface StormReport {
  readonly kills: number;
  readonly stops: number;
  readonly seconds: number;
  readonly intents: number;
  readonly effects: number;
  /** Intents that must land once and did not, each in one sentence. */
  readonly notOnce: readonly string[];
  readonly violations: readonly Violation[];
  readonly effort: Effort;
  /** How many of each kind the store noted. */
  readonly events: Readonly<Record<string, number>>;
  readonly logs: Logs;
}

export async function storm(options: StormOptions): Promise<StormReport> {
  using scratch = newScratch('storm');
  await using server = await startEffectServer({ log: scratch.path('effects.jsonl'), targets: targets() });
  const chance = chanceOf(options.seed);
  const ledger = scratch.path('ledger.db');
  const since = Date.now();
  const crew = startCrew({
    size: options.workers,
    chance,
    job: { ledger, url: server.url, lanes: 4, since },
    logOf: (worker) => scratch.path(`${worker}.work.jsonl`),
  });
  const watching = createSemel({ store: `sqlite:${ledger}`, namespace, onWarning: () => undefined });
  const person = somebody(watching, server.effects, chanceOf(options.seed + 1));
  const moods = moodsOf(server, chanceOf(options.seed + 2));
  let decided = 0;

  try {
    const isOver = () =>
      (crew.kills >= options.kills && crew.stops >= options.stops) || Date.now() - since >= options.maxMs;
    const looking = (async () => {
      while (!isOver()) {
        decided += await person.look();
        await moods.change();
        const { kills, stops } = crew;
        const effects = server.effects().length;
        options.onProgress?.({ seconds: (Date.now() - since) / 1000, kills, stops, effects, decided });
        await delay(1_000);
      }
    })();
    while (!isOver()) {
      await delay(chance.between(0, 2 * options.faultEveryMs));
      await crew.fault();
    }
    await looking;
    const died = await crew.finish();
    await watching.close();
    await moods.end();
    const seconds = (Date.now() - since) / 1000;

    const after = await calm(ledger, server.url, server.effects, scratch.path('after.work.jsonl'));
    const logs: Logs = {
      work: [...workOf(scratch.folder), ...died],
      records: after.records,
      events: after.events,
      effects: server.effects(),
      policies,
    };
    const { kills, stops } = crew;
    return {
      kills,
      stops,
      seconds,
      intents: after.intents,
      effects: logs.effects.length,
      notOnce: notOnce(server.effects(), after),
      violations: checkAll(logs),
      effort: effortOf(logs),
      events: countBy(after.events, ({ type }) => type),
      logs,
    };
  } finally {
    await crew.disband();
    await watching.close();
  }
}

interface Calm {
  readonly intents: number;
  readonly records: readonly StoredRecord[];
  readonly events: readonly StoreEvent[];
}

/** No process of the storm is left: doubts are decided, and every caller comes back once. */
async function calm(
  ledger: string,
  url: string,
  effects: () => readonly LandedEffect[],
  log: string,
): Promise<Calm> {
  // Every lease is over, and nothing can still be on its way.
  const clock = movableClock(60_000);
  const store = sqliteStore({ path: ledger, clock, machine: { uptimeMs: () => clock.mono() } });
  const work = openWorkLog(log, 'after');
  const semel = createSemel({
    store: hookedStore(store, work.hooks),
    clock,
    namespace,
    onWarning: () => undefined,
  });
  const tools = new Map(
    contracts.map((name) => [name, toolOf(semel, name, { url, at: () => undefined, ...terms })]),
  );
  try {
    await semel.doubts.sweep();
    await somebody(semel, effects, null).look();
    const open = await all(semel);
    for (const { contract, args } of open) {
      const { intent } = args as { intent: string };
      await work.call(tools.get(contract as never)!, { intent, wording: 'after the storm' });
    }
    const records: StoredRecord[] = [];
    for (let after: string | undefined; ; ) {
      const page = await store.list({ namespace, limit: 500, ...(after === undefined ? {} : { after }) });
      records.push(...page.items);
      if (page.next === undefined) break;
      after = page.next;
    }
    const events: StoreEvent[] = [];
    for (const { key } of records) events.push(...(await store.history(namespace, key)));
    return { intents: open.length, records, events };
  } finally {
    await semel.close();
  }
}

async function all(semel: Semel) {
  const found = [];
  for (let after: string | undefined; ; ) {
    const page = await semel.records.list({ limit: 500, ...(after === undefined ? {} : { after }) });
    found.push(...page.items);
    if (page.next === undefined) return found;
    after = page.next;
  }
}

/**
 * The same once more, without the checker: in the end each intent landed exactly once, unless the target refused it for
 * good or somebody chose otherwise.
 */
function notOnce(effects: readonly LandedEffect[], { records, events }: Calm): string[] {
  const landed = countBy(effects, ({ intent }) => intent);
  const chosen = new Set(
    events
      .filter(
        ({ type, detail }) => type === 'resolved' && (detail.act === 'runAgain' || detail.act === 'abandon'),
      )
      .map(({ key }) => key),
  );
  return records.flatMap(({ key, contract, args, status, doubtSince }) => {
    const { intent } = JSON.parse(args ?? '{}') as { intent: string };
    const count = landed[intent] ?? 0;
    const isRefused = status === 'failed' && doubtSince === null && count === 0;
    const isOnce = isRefused || (policies[contract]?.repeats ? count >= 1 : count === 1);
    return isOnce || chosen.has(key) ? [] : [`${intent} landed ${count} times; its record is ${status}.`];
  });
}

/** Where there is no window a record expires at once and may be pruned; all others must be there at the end. */
function checkAll(logs: Logs): readonly Violation[] {
  const isOf = (name: string) => ({
    key: (key: string) => key.startsWith(`${name}/`),
    intent: (intent: string) => intent.startsWith(`${name} `),
  });
  const windowless = isOf('write-idempotent');
  const part = (isWanted: boolean): Logs => ({
    ...logs,
    work: logs.work.filter((entry) => entry.kind === 'died' || windowless.intent(entry.intent) === isWanted),
    records: logs.records.filter(({ key }) => windowless.key(key) === isWanted),
    events: logs.events.filter(({ key }) => windowless.key(key) === isWanted),
    effects: logs.effects.filter(({ intent }) => windowless.intent(intent) === isWanted),
    expires: isWanted,
  });
  return [...check(part(false)), ...check(part(true))];
}

function workOf(folder: string): WorkEntry[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.work.jsonl'))
    .flatMap((name) => parseLines<WorkEntry>(readFileSync(join(folder, name), 'utf8')));
}

function countBy<T>(items: readonly T[], nameOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1;
  return counts;
}
