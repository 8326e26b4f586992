// Many processes, one ledger, the same thousand calls: each lands once, and everybody hears of the same effect.
import { expect, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { startEffectServer } from '../support/effect-server/index.ts';
import type { RacerJob, RacerLine } from './racer.ts';

const racers = 8;
const keys = 1_000;

test(`${racers} processes race over ${keys} keys: exactly ${keys} effects`, async () => {
  using scratch = newScratch('race');
  await using server = await startEffectServer({ log: scratch.path('effects.jsonl') });
  const startAt = Date.now() + 2_000;
  const processes = Array.from({ length: racers }, (_, racer) => {
    const job: RacerJob = {
      ledger: scratch.path('ledger.db'),
      url: server.url,
      keys,
      racer,
      lanes: 16,
      startAt,
    };
    return startNode<RacerLine>(new URL('./racer.ts', import.meta.url), job);
  });
  await Promise.all(processes.map(({ ended }) => ended));

  for (const { errors } of processes) expect(errors()).toBe('');
  const lines = processes.map(({ lines: [line] }) => line as RacerLine);
  expect(lines.flatMap(({ errors }) => errors)).toEqual([]);

  const effects = server.effects();
  expect(effects).toHaveLength(keys);
  expect(new Set(effects.map(({ intent }) => intent)).size).toBe(keys);
  expect(sum(lines.map(({ executed }) => executed))).toBe(keys);
  expect(sum(lines.map(({ replayed }) => replayed))).toBe(keys * (racers - 1));
  // Not one process did it all while the others watched.
  expect(lines.filter(({ executed }) => executed > 0).length).toBeGreaterThan(1);

  const landed = Array.from(
    { length: keys },
    (_, n) => effects.find(({ intent }) => intent === String(n))?.seq,
  );
  for (const { told } of lines) expect(told).toEqual(landed);
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
