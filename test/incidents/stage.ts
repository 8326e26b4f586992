// Plays an incident in one way, with a target, a ledger and a folder of its own, and counts what landed and what is in
// doubt.

import { readFileSync } from 'node:fs';
import { createSemel } from '../../src/index.ts';
import { movableClock } from '../processes/movable-clock.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { startEffectServer } from '../support/effect-server/index.ts';
import type { Incident, Job, Stage } from './incident.ts';

export interface Outcome {
  readonly effects: number;
  readonly inDoubt: number;
}

export const namespace = 'incident';

/** The one target of every incident. */
export const target = 'target';

export async function play(incident: Incident, way: string): Promise<Outcome> {
  using scratch = newScratch('incident');
  await using server = await startEffectServer({
    log: scratch.path('effects.jsonl'),
    targets: { [target]: incident.targets ?? {} },
  });
  const ledger = scratch.path('state/semel/ledger.db');
  const job: Job = { way, url: server.url, ledger, folder: scratch.folder };
  const start: Stage['start'] = (part = {}, where = {}) =>
    startNode<unknown>(new URL(incident.file, import.meta.url), { ...job, ...part }, where);
  await incident.play({
    way,
    server,
    folder: scratch.folder,
    start,
    async act(part, where) {
      const actor = start(part, where) as ReturnType<typeof startNode>;
      const ended = await actor.ended;
      if (ended.code !== 0 && ended.signal !== 'SIGKILL') {
        throw new Error(`${incident.file} ended with ${ended.code ?? ended.signal}.\n${actor.errors()}`);
      }
      return ended;
    },
  });
  const effects = server.effects().length;
  return { effects, inDoubt: way === 'bare' ? 0 : await countDoubts(ledger) };
}

/** When all leases are over. */
async function countDoubts(ledger: string): Promise<number> {
  await using semel = createSemel({
    store: `sqlite:${ledger}`,
    clock: movableClock(120_000),
    namespace,
    onWarning: () => undefined,
  });
  const { items } = await semel.doubts.list();
  return items.filter(({ inDoubt }) => inDoubt).length;
}

/** The contract as the incident's file has it, between its two marks: what is shown is what ran. */
export function contractOf({ file }: Incident): string {
  const source = readFileSync(new URL(file, import.meta.url), 'utf8');
  const [, marked] = /\/\/ contract\n([\s\S]*?)\n *\/\/ end/.exec(source) ?? [];
  if (marked === undefined) throw new Error(`${file} marks no contract.`);
  const indent = /^ */.exec(marked)?.[0].length ?? 0;
  return marked
    .split('\n')
    .map((line) => line.slice(indent))
    .join('\n');
}
