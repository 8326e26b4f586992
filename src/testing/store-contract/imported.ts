// Records that come from another ledger: what a provider or a verifier knows them by comes with them.

import assert from 'node:assert/strict';
import type { Imported } from '../../store/store.ts';
import { hour, minute, window } from './attempt.ts';
import { behaviour, unchanged } from './scene.ts';

const imported: Imported = {
  fence: 40,
  providerKeyFence: 38,
  firstDispatchedAt: 1_700_000_000_000,
  lastDispatchedAt: 1_700_000_060_000,
  prepared: '{"body":"Dear Ada"}',
};

export const importedCases = [
  behaviour(
    'a record from another ledger continues above its fence, under the key its provider knows',
    [],
    async ({ take, read }) => {
      await take({ imported, crossing: true });
      const record = await read();
      assert.equal(record.fence, 41);
      assert.equal(record.generation, 41);
      assert.equal(record.providerKeyFence, 38);
      assert.equal(record.firstDispatchedAt, imported.firstDispatchedAt);
      assert.equal(record.lastDispatchedAt, imported.lastDispatchedAt);
      assert.equal(record.prepared, imported.prepared);
      assert.equal(record.dispatched, true);
    },
  ),

  behaviour('it changes nothing if a record already decides', [], async (scene) => {
    const first = await scene.take({ crossing: true });
    await unchanged(scene, () => scene.lose({ imported }));
    await first.settle('unknown');
    await unchanged(scene, () => scene.lose({ imported }));
    await first.succeed();
    await unchanged(scene, () => scene.lose({ imported }));
  }),

  behaviour('it takes the place of a free record, in a generation of its own', [], async ({ take, read }) => {
    await (await take()).settle('released');
    await take({ imported });
    const record = await read();
    assert.equal(record.generation, 41);
    assert.equal(record.providerKeyFence, 38);
    assert.equal(record.attempts, 1);
  }),

  behaviour('a local doubt stays, whatever is imported', [], async (scene) => {
    const first = await scene.take({ crossing: true });
    await first.settle('unknown');
    await scene.resolved({ type: 'runAgain' });
    const arrived = await scene.take({ imported, crossing: true });
    await arrived.settle('failed');
    const record = await scene.read();
    assert.equal(record.status, 'unknown');
    assert.equal(record.generation, first.generation);
  }),

  behaviour(
    'its provider’s window counts from its first dispatch in the other ledger',
    ['time'],
    async (scene) => {
      const now = (await scene.take({ key: 'mail.send/=clock' })).record.readAt;
      const early = { ...imported, firstDispatchedAt: now - 3 * hour };
      const arrived = await scene.take({ imported: early, crossing: true, keyed: true });
      await arrived.settle('unknown');
      await scene.lose({ for: 'rerun', rerunWithinMs: 2 * hour });
      await scene.take({ for: 'rerun', rerunWithinMs: window });
    },
  ),

  behaviour('"not landed" of an imported doubt is not accepted early', ['time'], async (scene) => {
    const arrived = await scene.take({ imported, crossing: true, networkMs: 5 * minute });
    await arrived.settle('unknown');
    const early = await scene.resolve({ type: 'notLanded' });
    assert.equal(early.ok, false);
    await scene.advance(5 * minute);
    await scene.resolved({ type: 'notLanded' });
  }),
];
