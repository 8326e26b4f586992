// The one who came to find out whether it landed dies too. What the words mean: expected.ts.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newScratch } from '../processes/scratch.ts';
import { type EffectServer, startEffectServer } from '../support/effect-server/index.ts';
import { kill, survive } from './kill.ts';
import type { LineName } from './lines.ts';
import type { LaterPoint, Point } from './points.ts';

const scratch = newScratch('second-death');
let server: EffectServer;

beforeAll(async () => {
  server = await startEffectServer({ log: scratch.path('effects.jsonl') });
});

afterAll(async () => {
  await server.close();
  scratch[Symbol.dispose]();
});

/** The second comes when "not landed" is believed. */
const aheadMs = 12 * 60_000;

type Death = readonly [first: Point, second: LaterPoint, heard: string];

const deaths: Partial<Record<LineName, readonly Death[]>> = {
  verified: [
    // It only asked: the next one asks again.
    ['dispatched', 'verifying', 'busy · run · replay · replay = 1'],
    // With the claim as the line, it may have sent from the moment at which the doubt was cleared.
    ['dispatched', 'cleared', 'busy · doubt · run · replay = 1'],
    ['dispatched', 'landed', 'busy · replay · replay · replay = 1'],
    ['landed', 'verifying', 'busy · replay · replay · replay = 1'],
  ],
  'explicit-verified': [
    ['dispatched', 'verifying', 'busy · run · replay · replay = 1'],
    // The line is where the tool says, and it was not there yet.
    ['dispatched', 'cleared', 'busy · run · replay · replay = 1'],
    ['dispatched', 'dispatched', 'busy · doubt · run · replay = 1'],
    ['dispatched', 'landed', 'busy · replay · replay · replay = 1'],
  ],
};

for (const [name, rows] of Object.entries(deaths)) {
  const line = name as LineName;
  test.concurrent(`killed twice: ${line}`, async () => {
    const place = { ledger: scratch.path('ledger.db'), url: server.url };
    const intents = new Map(rows.map((death) => [`${line}: ${death[0]}, then ${death[1]}`, death]));
    for (const [intent, [first, second]] of intents) {
      await kill(place, { line, point: first, intent, isUnprovable: true });
      await kill(place, { line, point: second, intent, aheadMs, isUnprovable: true });
    }
    const survived = await survive(place, { line, intents: [...intents.keys()], aheadMs });
    const seen = survived.map(({ intent, heard }) => {
      const effects = server.effects().filter((effect) => effect.intent === intent).length;
      return [intent, `${heard.map(({ word }) => word).join(' · ')} = ${effects}`];
    });
    expect(seen).toEqual([...intents].map(([intent, [, , words]]) => [intent, words]));
  });
}
