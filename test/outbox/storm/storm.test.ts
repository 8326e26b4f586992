// A small storm on an outbox; the long one is `npm run chaos -- outbox`.

import { expect, test } from 'vitest';
import { outboxStorm } from './storm.ts';

test('relays and stagers are killed, stopped and cut off: nothing is lost, doubled or out of order', async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const report = await outboxStorm({
    seed,
    kills: 8,
    relays: 2,
    stagers: 2,
    faultEveryMs: 250,
    perSecond: 30,
  });
  console.log(JSON.stringify({ seed, ...report }));
  expect(report.violations).toEqual([]);
  expect(report.effects).toBeGreaterThan(10);
  expect(report.faults.relayKill).toBe(8);
}, 900_000);
