// "Not landed", said by a verifier that holds the key: the doubt goes, the claim stays.

import assert from 'node:assert/strict';
import { day, hour, lease, minute, quiet, refusedBecause, tail } from './attempt.ts';
import { behaviour, refusedAs, type Scene, unchanged } from './scene.ts';

/** An attempt lapsed after the line; a verifier holds the key, and the quiet time is over. */
async function verifying(scene: Scene, over = {}) {
  const dead = await scene.take({ crossing: true, ...over });
  await scene.advance(quiet);
  const verifier = await scene.take({ for: 'verify', ...over });
  return { dead, verifier };
}

export const clearCases = [
  behaviour('clearing removes the doubt, and the same claim continues', ['time'], async (scene) => {
    const { dead, verifier } = await verifying(scene);
    const record = await verifier.cleared();
    assert.equal(record.status, 'running');
    assert.equal(record.fence, verifier.fence);
    assert.equal(record.generation, dead.generation);
    assert.equal(record.doubtFence, null);
    assert.equal(record.firstDispatchedAt, null);
    const event = (await scene.events()).at(-1);
    assert.equal(event?.type, 'cleared');
    assert.equal(event.detail.doubtFence, dead.fence);
    await verifier.send();
    assert.equal((await verifier.succeed()).record?.status, 'succeeded');
  }),

  behaviour('the record is never free between verdict and execution', ['time'], async (scene) => {
    const { verifier } = await verifying(scene);
    await verifier.cleared();
    await scene.lose();
    await scene.lose({ for: 'rerun' });
  }),

  behaviour('"not landed" is not accepted while a request may be in flight', ['time'], async (scene) => {
    await scene.take({ crossing: true });
    await scene.lapse();
    const verifier = await scene.take({ for: 'verify', leaseMs: hour });
    await scene.advance(quiet - lease - 1);
    assert.equal((await scene.read()).inFlightMs, 1);
    await unchanged(scene, async () => refusedBecause(await verifier.clear(), 'early'));
    await scene.advance(1);
    await verifier.cleared();
  }),

  behaviour(
    '"not landed" is judged by when the target was checked, not by when it is reported',
    ['time'],
    async (scene) => {
      await scene.take({ crossing: true });
      await scene.lapse();
      const verifier = await scene.take({ for: 'verify', leaseMs: hour });
      await scene.advance(quiet);
      await unchanged(scene, async () => {
        refusedBecause(await verifier.clear({ seenAt: verifier.record.readAt }), 'early');
      });
      const { record } = await verifier.renew();
      await verifier.cleared({ seenAt: record?.readAt ?? 0 });
    },
  ),

  behaviour(
    'a check made under a wrong clock is not accepted once the clock is right again',
    ['time', 'unsteady'],
    async (scene) => {
      await scene.take({ crossing: true });
      await scene.lapse();
      await scene.unsteady(true);
      const verifier = await scene.take({ for: 'verify', leaseMs: hour });
      const seen = await scene.read();
      await scene.unsteady(false);
      await scene.advance(quiet);
      refusedBecause(await verifier.clear({ seenAt: verifier.record.readAt }), 'early');
      const late = { decidedAt: seen.readAt, force: false };
      assert.equal((await scene.resolve({ type: 'notLanded' }, late)).ok, false);
      const { record } = await verifier.renew();
      await verifier.cleared({ seenAt: record?.readAt ?? 0 });
    },
  ),

  behaviour('"not landed" waits for every attempt, not only the last', ['time'], async (scene) => {
    const first = await scene.take({ crossing: true, inFlightForMs: 2 * hour });
    await scene.lapse();
    await scene.take({ crossing: true, for: 'rerun', inFlightForMs: minute });
    await scene.advance(10 * minute);
    const verifier = await scene.take({ for: 'verify', leaseMs: 3 * hour });
    assert.equal(verifier.record.doubtFence, first.fence);
    refusedBecause(await verifier.clear(), 'early');
    await scene.advance(2 * hour);
    await verifier.cleared();
  }),

  behaviour(
    'after an attempt reports its end, only its in-flight time is waited for',
    ['time'],
    async (scene) => {
      await (await scene.take({ crossing: true })).settle('unknown');
      const verifier = await scene.take({ for: 'verify', leaseMs: hour });
      assert.equal(verifier.record.inFlightMs, tail);
      await scene.advance(tail);
      await verifier.cleared();
    },
  ),

  behaviour('a reported end does not shorten the wait for an earlier attempt', ['time'], async (scene) => {
    await scene.take({ crossing: true, inFlightForMs: 2 * hour });
    await scene.lapse();
    const rerun = await scene.take({ crossing: true, for: 'rerun' });
    await rerun.settle('unknown');
    assert.equal((await scene.read()).inFlightMs, 2 * hour - lease);
  }),

  behaviour(
    'an attempt that renewed its lease may have sent until that lease was over',
    ['time'],
    async (scene) => {
      const holder = await scene.take({ crossing: true, leaseMs: 10 * minute, inFlightForMs: 11 * minute });
      await scene.advance(8 * minute);
      await holder.renew(10 * minute);
      await scene.advance(10 * minute);
      const { lapsed, inFlightMs } = await scene.read();
      assert.equal(lapsed, true);
      // A store over a wire grants a lease that is a little longer.
      assert.ok(inFlightMs >= tail && inFlightMs < 2 * tail, `it is quiet in ${inFlightMs} ms`);
    },
  ),

  behaviour('an attempt that ended after its timeout restarts the wait', ['time'], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.settle('unknown');
    await scene.advance(tail - 1);
    assert.equal((await holder.settle('unknown')).record?.inFlightMs, 1);
    assert.equal((await holder.settle('unknown', { late: true })).record?.inFlightMs, tail);
    assert.equal((await scene.read()).inFlightMs, tail);
  }),

  behaviour(
    'an attempt that continued restarts the wait, whatever was checked since',
    ['time'],
    async (scene) => {
      const holder = await scene.take({ crossing: true });
      await holder.settle('unknown');
      await scene.advance(tail - 1);
      const verifier = await scene.take({ for: 'verify' });
      // While it is asked, and once it could not tell; it goes on, and then it has ended.
      assert.equal((await holder.settle('unknown', { late: true, error: null })).record?.inFlightMs, tail);
      await scene.advance(tail - 1);
      await verifier.settle('unknown', { found: true });
      assert.equal((await holder.settle('unknown', { late: true })).record?.inFlightMs, tail);
      assert.deepEqual(await scene.eventTypes(), ['takeover', 'fenced']);
      await scene.advance(tail - 1);
      refusedAs(await scene.resolve({ type: 'notLanded' }), 'early');
      await scene.advance(1);
      await (await scene.take({ for: 'verify' })).cleared();
      // What was accounted for is not waited for any more.
      await holder.settle('unknown', { late: true });
      assert.equal((await scene.read()).inFlightMs, 0);
    },
  ),

  behaviour(
    'an attempt that ends unknown is waited for, even if it never dispatched',
    ['time'],
    async (scene) => {
      const holder = await scene.take();
      assert.equal((await holder.settle('unknown')).record?.inFlightMs, tail);
      const again = await scene.take({ for: 'rerun' });
      await scene.advance(tail - 1);
      assert.equal((await again.settle('unknown')).record?.inFlightMs, tail);
    },
  ),

  behaviour('an unsure verifier does not change the waiting time', ['time'], async (scene) => {
    await scene.take({ crossing: true });
    await scene.lapse();
    await (await scene.take({ for: 'verify' })).settle('unknown');
    assert.equal((await scene.read()).inFlightMs, quiet - lease);
  }),

  behaviour(
    'under an unsteady clock a request may always be in flight',
    ['time', 'unsteady'],
    async (scene) => {
      const { verifier } = await verifying(scene);
      // Back, so that the lease also holds where it is counted by the same clock.
      await scene.unsteady(true, -2 * day);
      assert.equal((await scene.read()).inFlightMs, Number.POSITIVE_INFINITY);
      refusedBecause(await verifier.clear(), 'early');
      await scene.unsteady(false);
      await verifier.cleared();
    },
  ),

  behaviour(
    'with an unreliable clock, a request stops counting as in flight once its attempt reports',
    ['time', 'unsteady'],
    async (scene) => {
      await scene.unsteady(true, -2 * day);
      const sender = await scene.take({ crossing: true });
      await scene.unsteady(false);
      await scene.lapse();
      assert.equal((await scene.read()).inFlightMs, Number.POSITIVE_INFINITY);
      await sender.settle('unknown');
      assert.equal((await scene.read()).inFlightMs, tail);
    },
  ),

  behaviour('clearing needs a live lease and the token', ['time'], async (scene) => {
    const { dead, verifier } = await verifying(scene);
    refusedBecause(await dead.clear(), 'fenced');
    await scene.lapse();
    await unchanged(scene, async () => refusedBecause(await verifier.clear(), 'lapsed'));
    await verifier.renew();
    await verifier.cleared();
  }),

  behaviour('clearing may dispatch in the same step', ['time'], async (scene) => {
    const { verifier } = await verifying(scene);
    const record = await verifier.cleared({ crossing: true });
    assert.equal(record.dispatched, true);
    assert.equal(record.firstDispatchedAt, record.readAt);
    await scene.lapse();
    assert.equal((await scene.read()).inDoubt, true);
  }),

  behaviour(
    'a verifier that cleared and died before dispatch leaves the record free',
    ['time'],
    async (scene) => {
      const { verifier } = await verifying(scene);
      await verifier.cleared();
      await scene.lapse();
      const record = await scene.read();
      assert.deepEqual([record.lapsed, record.inDoubt], [true, false]);
      await scene.take();
    },
  ),

  behaviour('after a clear, "released" and "failed" apply to the record again', ['time'], async (scene) => {
    const { verifier } = await verifying(scene);
    await verifier.cleared({ crossing: true });
    assert.equal((await verifier.settle('released')).record?.status, 'released');
    const next = await scene.take();
    assert.equal(next.record.doubtFence, null);
  }),

  behaviour('inside the provider’s window a cleared attempt keeps the key', ['time'], async (scene) => {
    const { dead, verifier } = await verifying(scene, { keyed: true, rerunWithinMs: hour });
    assert.equal((await verifier.cleared()).providerKeyFence, dead.record.providerKeyFence);
  }),

  behaviour('after the provider’s window a cleared attempt gets a fresh key', ['time'], async (scene) => {
    const { dead, verifier } = await verifying(scene, { keyed: true, rerunWithinMs: minute });
    const record = await verifier.cleared();
    assert.equal(record.providerKeyFence, verifier.fence);
    assert.equal(record.generation, dead.generation, 'late news must still find its record');
    await verifier.send();
  }),

  behaviour('a fresh key can be requested', ['time'], async (scene) => {
    const { verifier } = await verifying(scene, { keyed: true, rerunWithinMs: hour });
    assert.equal((await verifier.cleared({ freshKey: true })).providerKeyFence, verifier.fence);
  }),

  behaviour('a claim that took no doubt may clear, without an event', [], async (scene) => {
    const holder = await scene.take({ for: 'verify' });
    const record = await holder.cleared({ crossing: true });
    assert.equal(record.dispatched, true);
    assert.deepEqual(await scene.eventTypes(), []);
  }),
];
