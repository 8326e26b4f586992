// Crossing the line.

import assert from 'node:assert/strict';
import { day, hour, lease, minute, quiet, refusedBecause } from './attempt.ts';
import { behaviour, unchanged } from './scene.ts';

export const dispatchCases = [
  behaviour('a dispatch is stored before it is confirmed', [], async (scene) => {
    const holder = await scene.take();
    const record = await holder.send({ prepared: '{"subject":"hello"}' });
    assert.equal(record.dispatched, true);
    assert.equal(record.prepared, '{"subject":"hello"}');
    assert.equal(record.firstDispatchedAt, record.readAt);
    assert.equal(record.inFlightMs, quiet);
    const seen = await scene.elsewhere.read(holder.namespace, holder.key);
    assert.equal(seen?.dispatched, true);
  }),

  behaviour('a request about to be sent without our key is recorded as such', [], async (scene) => {
    const terms = { keyed: true, rerunWithinMs: day } as const;
    const holder = await scene.take({ ...terms, crossing: true });
    assert.equal(holder.record.keyed, true);
    assert.equal((await holder.send({ keyed: false })).keyed, false);
    assert.equal((await scene.read()).keyed, false);
    await holder.settle('unknown');
    // Nobody may take it on the provider's word.
    await scene.lose({ ...terms, for: 'rerun' });
  }),

  behaviour('a dispatch needs a live lease, and a renewal restores it', ['time'], async (scene) => {
    const holder = await scene.take();
    await scene.advance(lease);
    await unchanged(scene, async () => refusedBecause(await holder.dispatch(), 'lapsed'));
    await holder.renew();
    await holder.send();
  }),

  behaviour('a dispatch needs the token of the claim', [], async (scene) => {
    const holder = await scene.take();
    await unchanged(scene, async () => {
      refusedBecause(await holder.dispatch({ token: 'somebody else' }), 'fenced');
      refusedBecause(await holder.dispatch({ key: 'mail.send/=nothing' }), 'fenced');
      refusedBecause(await holder.dispatch({ namespace: 'elsewhere' }), 'fenced');
    });
  }),

  behaviour('nothing is dispatched after an attempt has ended', [], async (scene) => {
    for (const outcome of ['succeeded', 'failed', 'released', 'unknown'] as const) {
      const key = `mail.send/=${outcome}`;
      const holder = await scene.take({ key, crossing: true });
      await holder.settle(outcome);
      await unchanged(
        scene,
        async () => {
          refusedBecause(await holder.dispatch(), 'fenced');
          refusedBecause(await holder.clear(), 'fenced');
          assert.equal((await holder.renew()).held, false);
        },
        key,
      );
    }
  }),

  behaviour(
    'each try moves the last dispatch and its in-flight time, never the first',
    ['time'],
    async (scene) => {
      const holder = await scene.take();
      const first = await holder.send();
      await scene.advance(10_000);
      const second = await holder.send();
      assert.equal(second.firstDispatchedAt, first.firstDispatchedAt);
      assert.equal(second.lastDispatchedAt, (first.lastDispatchedAt ?? 0) + 10_000);
      assert.equal(second.inFlightMs, quiet);
    },
  ),

  behaviour('a shorter in-flight time never shortens that of an earlier try', ['time'], async (scene) => {
    const holder = await scene.take({ inFlightForMs: hour });
    await holder.send();
    assert.equal((await holder.send({ inFlightForMs: 1 })).inFlightMs, hour);
  }),

  behaviour('every later try sends what was prepared for the first', ['time'], async (scene) => {
    const holder = await scene.take({ keyed: true, rerunWithinMs: hour });
    await holder.send({ prepared: '"first"' });
    assert.equal((await holder.send({ prepared: '"second"' })).prepared, '"first"');
    await scene.lapse();
    const rerun = await scene.take({ keyed: true, for: 'rerun', rerunWithinMs: hour });
    assert.equal(rerun.record.prepared, '"first"');
    assert.equal((await rerun.send({ prepared: '"third"' })).prepared, '"first"');
  }),

  behaviour('a prepared request stays with the args it was made from', [], async (scene) => {
    const first = await scene.take({ args: '{"body":"first"}', content: 'first' });
    await first.send({ prepared: '"first"' });
    await first.settle('released');
    const { record } = await scene.take({ args: '{"body":"second"}', content: 'second' });
    assert.deepEqual(
      [record.args, record.content, record.prepared],
      ['{"body":"first"}', 'first', '"first"'],
    );
  }),

  behaviour('the provider’s window is judged at every dispatch, from the first', ['time'], async (scene) => {
    const holder = await scene.take({ keyed: true, rerunWithinMs: 10 * minute, leaseMs: hour });
    await scene.advance(20 * minute);
    await holder.send();
    await scene.advance(10 * minute - 1);
    await holder.send();
    await scene.advance(1);
    await unchanged(scene, async () => refusedBecause(await holder.dispatch(), 'window'));
  }),

  behaviour('a claim inside the window does not allow a dispatch after it', ['time'], async (scene) => {
    const keyed = { keyed: true, rerunWithinMs: 10 * minute } as const;
    await (await scene.take(keyed)).send();
    await scene.advance(9 * minute);
    const rerun = await scene.take({ ...keyed, for: 'rerun', leaseMs: hour });
    await scene.advance(minute);
    refusedBecause(await rerun.dispatch(), 'window');
  }),

  behaviour('a release restarts the provider’s window', ['time'], async (scene) => {
    const keyed = { keyed: true, crossing: true, rerunWithinMs: 10 * minute } as const;
    await (await scene.take(keyed)).settle('released');
    await scene.advance(20 * minute);
    const next = await scene.take(keyed);
    assert.equal(next.record.firstDispatchedAt, next.record.readAt);
    await next.send();
  }),

  behaviour(
    'under an unsteady clock a first dispatch is allowed, a further one by key is not',
    ['unsteady'],
    async (scene) => {
      const holder = await scene.take({ keyed: true, rerunWithinMs: hour });
      // Back, so that the lease also holds where it is counted by the same clock.
      await scene.unsteady(true, -2 * day);
      await holder.send();
      refusedBecause(await holder.dispatch(), 'window');
      await holder.send({ rerunWithinMs: null });
    },
  ),
];
