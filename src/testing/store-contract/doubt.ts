// Doubt is sticky: only a success, or a verdict that speaks for all attempts so far, takes it away.

import assert from 'node:assert/strict';
import { day, refusedBecause } from './attempt.ts';
import { behaviour, refusedAs, type Scene, seenIn } from './scene.ts';

async function rerunning(scene: Scene) {
  const dead = await scene.take({ crossing: true });
  await scene.lapse();
  return { dead, rerun: await scene.take({ crossing: true, for: 'rerun' }) };
}

export const doubtCases = [
  behaviour(
    '"released" and "failed" of a later attempt do not settle an earlier doubt',
    ['time'],
    async (scene) => {
      for (const outcome of ['released', 'failed'] as const) {
        const key = `mail.send/=${outcome}`;
        const dead = await scene.take({ key, crossing: true });
        await scene.lapse();
        const rerun = await scene.take({ key, crossing: true, for: 'rerun' });
        const { settled, record } = await rerun.settle(outcome);
        assert.equal(settled, true);
        assert.equal(record?.status, 'unknown');
        assert.equal(record.doubtFence, dead.fence);
        assert.equal(record.error?.message, 'the target said no', 'it stays as evidence');
        await scene.lose({ key });
        await scene.lose({ key, fingerprint: 'another' });
      }
    },
  ),

  behaviour('an unsure verifier leaves the doubt', ['time'], async (scene) => {
    const dead = await scene.take({ crossing: true });
    await scene.lapse();
    const verifier = await scene.take({ for: 'verify' });
    const { record } = await verifier.settle('released');
    assert.deepEqual([record?.status, record?.doubtFence], ['unknown', dead.fence]);
  }),

  behaviour('an attempt that corrects itself settles only itself', ['time'], async (scene) => {
    const { dead, rerun } = await rerunning(scene);
    await rerun.settle('unknown');
    const { fenced, record } = await rerun.settle('released');
    assert.deepEqual([fenced, record?.status, record?.doubtFence], [false, 'unknown', dead.fence]);
  }),

  behaviour('an ending without an error keeps the previous evidence', [], async (scene) => {
    await (await scene.take({ crossing: true })).settle('unknown');
    const verifier = await scene.take({ for: 'verify' });
    const { record } = await verifier.settle('unknown', { error: null });
    assert.equal(record?.error?.message, 'the target said no');
    assert.equal((await verifier.succeed()).record?.error, null);
  }),

  behaviour('a success ends the doubt of all attempts', ['time'], async (scene) => {
    const { rerun } = await rerunning(scene);
    const { record } = await rerun.succeed();
    assert.deepEqual([record?.status, record?.doubtFence, record?.inDoubt], ['succeeded', null, false]);
  }),

  behaviour('what is in doubt never expires and is never pruned', ['time'], async (scene) => {
    await scene.take({ key: 'mail.send/=lapsed', crossing: true });
    await (await scene.take({ key: 'mail.send/=unknown', crossing: true })).settle('unknown');
    await scene.advance(1000 * day);
    assert.equal(await scene.pruneAll(), 0);
    for (const key of ['mail.send/=lapsed', 'mail.send/=unknown']) {
      assert.equal((await scene.lose({ key })).inDoubt, true);
    }
  }),

  behaviour('a holder that wakes up after its lease makes earlier reads stale', ['time'], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await scene.lapse();
    const seen = seenIn(await scene.read());
    const { record } = await holder.renew();
    assert.notEqual(record?.lastDispatchedAt, seen.dispatchedAt);
    assert.equal(record?.firstDispatchedAt, holder.record.firstDispatchedAt);
    assert.ok((record?.inFlightMs ?? 0) > 0);
    await scene.advance(day);
    refusedAs(await scene.resolve({ type: 'notLanded' }, { seen }), 'stale');
  }),

  behaviour('a verifier that wakes up records no dispatch', ['time'], async (scene) => {
    const dead = await scene.take({ crossing: true });
    await scene.lapse();
    const verifier = await scene.take({ for: 'verify' });
    await scene.lapse();
    const { record } = await verifier.renew();
    assert.equal(record?.dispatched, false);
    assert.equal(record?.lastDispatchedAt, dead.record.lastDispatchedAt);
    refusedBecause(await dead.dispatch(), 'fenced');
  }),
];
