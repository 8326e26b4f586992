// A record that keeps killing its workers before they dispatch anything is closed, so that it stops.

import assert from 'node:assert/strict';
import { failureWindow } from './attempt.ts';
import { behaviour, type Scene } from './scene.ts';

async function crash(scene: Scene, times: number, maxCrashes: number): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    await scene.take({ maxCrashes });
    await scene.lapse();
  }
}

export const poisonCases = [
  behaviour('a record whose attempts keep dying before dispatch is closed', ['time'], async (scene) => {
    await crash(scene, 3, 3);
    const record = await scene.lose({ maxCrashes: 3 });
    assert.equal(record.status, 'failed');
    assert.equal(record.error?.code, 'POISON');
    assert.equal(record.crashes, 3);
    assert.equal(record.settledAt, record.readAt);
    assert.ok(record.fence > record.generation + 2, 'closing it is an act of its own');
    assert.equal((await scene.eventTypes()).at(-1), 'poisoned');
    assert.equal((await scene.lose({ maxCrashes: 3 })).fence, record.fence);
  }),

  behaviour('an attempt proven dead counts like one whose lease ran out', ['time'], async (scene) => {
    await crash(scene, 1, 3);
    for (let i = 0; i < 2; i += 1) {
      await scene.take({ maxCrashes: 3 });
      await scene.resolved({ type: 'died' });
    }
    const record = await scene.lose({ maxCrashes: 3 });
    assert.deepEqual([record.status, record.error?.code, record.crashes], ['failed', 'POISON', 3]);
  }),

  behaviour('an attempt that dies after dispatch resets the count', ['time'], async (scene) => {
    await crash(scene, 1, 2);
    await scene.take({ maxCrashes: 2, crossing: true });
    await scene.resolved({ type: 'died' });
    await scene.advance(failureWindow);
    await scene.resolved({ type: 'notLanded' });
    await scene.take({ maxCrashes: 2 });
  }),

  behaviour('a poisoned record fences its last attempt', ['time'], async (scene) => {
    await crash(scene, 1, 2);
    const sleeper = await scene.take({ maxCrashes: 2 });
    await scene.lapse();
    await scene.lose({ maxCrashes: 2 });
    assert.equal((await sleeper.renew()).held, false);
    assert.equal((await sleeper.dispatch()).ok, false);
  }),

  behaviour('a poisoned record runs again after its failure window', ['time'], async (scene) => {
    await crash(scene, 2, 2);
    const poisoned = await scene.lose({ maxCrashes: 2 });
    await scene.advance(failureWindow);
    const next = await scene.take({ maxCrashes: 2 });
    assert.ok(next.generation > poisoned.fence);
    assert.equal(next.record.crashes, 0);
  }),

  behaviour('an attempt that ends by itself is not a crash', ['time'], async (scene) => {
    await crash(scene, 2, 3);
    await (await scene.take({ maxCrashes: 3 })).settle('released');
    await crash(scene, 2, 3);
    assert.equal((await scene.take({ maxCrashes: 3 })).record.crashes, 2);
  }),

  behaviour('attempts that died after dispatch are in doubt, never poison', ['time'], async (scene) => {
    await scene.take({ crossing: true, maxCrashes: 1 });
    await scene.lapse();
    for (let i = 0; i < 3; i += 1) {
      await scene.take({ for: 'verify', maxCrashes: 1 });
      await scene.lapse();
    }
    assert.equal((await scene.read()).inDoubt, true);
  }),

  behaviour('another intent under the same key is not poisoned by the first', ['time'], async (scene) => {
    await scene.take({ fingerprint: 'a', maxCrashes: 1 });
    await scene.lapse();
    assert.equal((await scene.take({ fingerprint: 'b', maxCrashes: 1 })).record.crashes, 0);
  }),

  behaviour('a poisoned record can be reopened', ['time'], async (scene) => {
    await crash(scene, 2, 2);
    await scene.lose({ maxCrashes: 2 });
    assert.equal((await scene.resolved({ type: 'reopen' })).status, 'released');
    assert.equal((await scene.take({ maxCrashes: 2 })).record.crashes, 0);
  }),
];
