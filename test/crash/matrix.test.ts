// SIGKILL at every crash point of every contract, on a real ledger and with a target in a process of its own.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newScratch } from '../processes/scratch.ts';
import { type EffectServer, startEffectServer } from '../support/effect-server/index.ts';
import { expected, withProof } from './expected.ts';
import type { Heard } from './heard.ts';
import { kill, survive } from './kill.ts';
import { describe as describeLine, type LineName, lineNames, lineOf } from './lines.ts';
import { exists, type Point, points } from './points.ts';
import { matrixTable } from './table.ts';
import { targets } from './tools.ts';

const scratch = newScratch('crash');
const ledger = scratch.path('ledger.db');
const seen: Partial<Record<LineName, Partial<Record<Point, string>>>> = {};
let server: EffectServer;

beforeAll(async () => {
  server = await startEffectServer({ log: scratch.path('effects.jsonl'), targets: targets() });
});

afterAll(async () => {
  console.log(matrixTable(seen));
  await server.close();
  scratch[Symbol.dispose]();
});

/** Contracts that differ in what happens once a death is known. */
const known: readonly LineName[] =
  process.platform === 'linux' ? ['write-idempotent', 'plain', 'keyed', 'verified', 'explicit'] : [];

for (const [line, isUnprovable] of [
  ...lineNames.map((name) => [name, true] as const),
  ...known.map((name) => [name, false] as const),
]) {
  // One line at a time would leave the machine idle while processes start.
  test.concurrent(`killed${isUnprovable ? '' : ' and known to be dead'}: ${describeLine(line)}`, async () => {
    const at = points.filter((point) => exists(line, point));
    const name = isUnprovable ? line : `${line}, known`;
    const intents = new Map(at.map((point) => [`${name}, ${point}`, point]));
    const place = { ledger, url: server.url };
    for (const [intent, point] of intents) await kill(place, { line, point, intent, isUnprovable });
    const survived = await survive(place, { line, intents: [...intents.keys()] });

    const cells: Partial<Record<Point, string>> = {};
    for (const { intent, heard } of survived) {
      const effects = server.effects().filter((effect) => effect.intent === intent);
      const words = heard.map(({ word }) => word).join(' · ');
      cells[intents.get(intent) as Point] = `${words} = ${effects.length}`;
      if (lineOf(line).effect !== 'read' && lineOf(line).effect !== 'write-idempotent') {
        expect(valuesOf(heard), `${intent}: everybody hears of the same effect`).toHaveLength(1);
        const isRepeatShown = heard.some(({ acceptedRepeat }) => acceptedRepeat);
        if (effects.length > 1) expect(isRepeatShown, `${intent}: the repeat is on a receipt`).toBe(true);
        expect(effects.length === 1 || lineOf(line).onDoubt === 'rerun', `${intent} landed once`).toBe(true);
      }
    }
    if (isUnprovable) seen[line] = cells;
    expect(cells).toEqual(isUnprovable ? expected[line] : withProof(expected[line]));
  });
}

function valuesOf(heard: readonly Heard[]): string[] {
  const values = heard.flatMap(({ value }) => (value === undefined ? [] : [JSON.stringify(value)]));
  return [...new Set(values)];
}

test('the table has every cell that exists, and no other', () => {
  for (const line of lineNames) {
    expect(Object.keys(expected[line]).sort()).toEqual(points.filter((point) => exists(line, point)).sort());
  }
});
