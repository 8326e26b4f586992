// What happens when a holder goes silent: who may take its place, and what the holder may still do.

import assert from 'node:assert/strict';
import type { ClaimRequest } from '../../store/store.ts';
import { day, hour, lease, refusedBecause, window } from './attempt.ts';
import { behaviour, unchanged } from './scene.ts';

export const takeoverCases = [
  behaviour('a claim of another boot has lapsed, whatever its lease said', ['reboot'], async (scene) => {
    await scene.take({ key: 'mail.send/=free', leaseMs: 1000 * day });
    const sent = await scene.take({ crossing: true, leaseMs: 1000 * day });
    await scene.reboot();
    assert.equal((await scene.take({ key: 'mail.send/=free' })).takeover, true);
    assert.equal((await scene.lose()).inDoubt, true);
    const verifier = await scene.take({ for: 'verify' });
    assert.equal(verifier.record.doubtFence, sent.fence);
    assert.ok(verifier.record.leaseLeftMs > 0);
    await scene.lose({ for: 'verify' });
  }),

  behaviour('a lease renewed in this boot, after a claim in another, holds', ['reboot'], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await scene.reboot();
    assert.equal((await holder.renew()).held, true);
    assert.equal((await scene.read()).lapsed, false);
    await scene.lose({ for: 'verify' });
  }),

  behaviour('a lease ends on the exact millisecond', ['time'], async (scene) => {
    await scene.take();
    await scene.advance(lease - 1);
    assert.equal((await scene.lose()).lapsed, false);
    await scene.advance(1);
    assert.equal((await scene.read()).lapsed, true);
    assert.equal((await scene.take()).takeover, true);
  }),

  behaviour('an attempt that lapsed before dispatch is taken over without doubt', ['time'], async (scene) => {
    const dead = await scene.take({ owner: 'the first' });
    await scene.lapse();
    assert.equal((await scene.read()).inDoubt, false);
    const next = await scene.take({ owner: 'the second' });
    assert.equal(next.takeover, true);
    assert.equal(next.fence, dead.fence + 1);
    assert.equal(next.generation, dead.generation);
    assert.equal(next.record.doubtFence, null);
    assert.equal(next.record.crashes, 1);
    const [event] = await scene.events();
    assert.equal(event?.type, 'takeover');
    assert.equal(event.fence, next.fence);
    assert.deepEqual(event.detail, {
      from: 'the first',
      fence: dead.fence,
      dispatched: false,
      lapsed: true,
      for: 'execute',
    });
  }),

  behaviour('a takeover reports why a doubt could be taken', ['time'], async (scene) => {
    const takenOver = async (key: string, terms: Partial<ClaimRequest>) => {
      await (await scene.take({ key, crossing: true, ...terms, for: 'execute' })).settle('unknown');
      await scene.take({ key, ...terms });
      const { lapsed, accepted, rerunWithinMs, windowMs } = (await scene.events(key))[0]?.detail ?? {};
      return { lapsed, accepted, rerunWithinMs, windowMs };
    };
    const nothing = { lapsed: false, accepted: undefined, rerunWithinMs: undefined, windowMs: undefined };
    const repeatable = { for: 'rerun', effect: 'write-idempotent' } as const;
    const keyed = { keyed: true, rerunWithinMs: hour };
    assert.deepEqual(await takenOver('mail.send/=verified', { for: 'verify' }), nothing);
    assert.deepEqual(await takenOver('mail.send/=harmless', repeatable), nothing);
    assert.deepEqual(await takenOver('mail.send/=accepted', { for: 'rerun' }), {
      ...nothing,
      accepted: true,
    });
    for (const purpose of ['rerun', 'verify'] as const)
      assert.deepEqual(await takenOver(`mail.send/=${purpose}`, { for: purpose, ...keyed }), {
        ...nothing,
        rerunWithinMs: hour,
        windowMs: window,
      });
    await scene.take({ key: 'mail.send/=silent', crossing: true });
    await scene.lapse();
    await scene.take({ key: 'mail.send/=silent', for: 'verify' });
    assert.equal((await scene.events('mail.send/=silent'))[0]?.detail.lapsed, true);
  }),

  behaviour('an attempt that lapsed before dispatch is free for another intent', ['time'], async (scene) => {
    const dead = await scene.take({ fingerprint: 'a' });
    await scene.lapse();
    const next = await scene.take({ fingerprint: 'b' });
    assert.equal(next.generation, next.fence);
    assert.ok(next.fence > dead.fence);
    refusedBecause(await dead.dispatch(), 'fenced');
  }),

  behaviour(
    'an attempt that lapsed after dispatch is in doubt and never simply run again',
    ['time'],
    async (scene) => {
      const dead = await scene.take({ crossing: true });
      await scene.lapse();
      await unchanged(scene, async () => {
        const record = await scene.lose();
        assert.equal(record.inDoubt, true);
        assert.equal(record.status, 'running');
      });
      await unchanged(scene, () => scene.lose({ fingerprint: 'another', for: 'verify' }));
      const verifier = await scene.take({ for: 'verify' });
      assert.equal(verifier.takeover, true);
      assert.equal(verifier.record.doubtFence, dead.fence);
      assert.equal(verifier.record.dispatched, false);
      assert.equal(verifier.record.lastDispatchedAt, dead.record.lastDispatchedAt);
    },
  ),

  behaviour(
    'a re-run takes an attempt that lapsed after dispatch, and keeps the doubt',
    ['time'],
    async (scene) => {
      const dead = await scene.take({ crossing: true, keyed: true });
      await scene.lapse();
      const rerun = await scene.take({ crossing: true, keyed: true, for: 'rerun', rerunWithinMs: hour });
      assert.equal(rerun.record.doubtFence, dead.fence);
      assert.equal(rerun.record.dispatched, true);
      assert.equal(rerun.record.firstDispatchedAt, dead.record.firstDispatchedAt);
      assert.equal(
        rerun.record.providerKeyFence,
        dead.record.providerKeyFence,
        'the provider must see the same key',
      );
    },
  ),

  behaviour('the doubt goes back to the first attempt without an outcome', ['time'], async (scene) => {
    const first = await scene.take({ crossing: true });
    await scene.lapse();
    for (let i = 0; i < 3; i += 1) {
      assert.equal((await scene.take({ for: 'rerun', crossing: true })).record.doubtFence, first.fence);
      await scene.lapse();
    }
    assert.equal((await scene.read()).attempts, 4);
  }),

  behaviour('a verifier that lapses leaves the record in doubt', ['time'], async (scene) => {
    const dead = await scene.take({ crossing: true });
    await scene.lapse();
    await scene.take({ for: 'verify' });
    await scene.lapse();
    assert.equal((await scene.lose()).inDoubt, true);
    assert.equal((await scene.take({ for: 'verify' })).record.doubtFence, dead.fence);
  }),

  behaviour(
    'for a re-run by the provider’s key, the window counts from the first dispatch',
    ['time'],
    async (scene) => {
      const keyed = { crossing: true, keyed: true, rerunWithinMs: 23 * hour } as const;
      await scene.take(keyed);
      await scene.advance(20 * hour);
      await scene.take({ ...keyed, for: 'rerun' });
      await scene.advance(3 * hour - 1);
      await scene.take({ ...keyed, for: 'rerun' });
      await scene.advance(lease);
      await unchanged(scene, () => scene.lose({ ...keyed, for: 'rerun' }));
      await scene.take({ ...keyed, for: 'verify' });
    },
  ),

  behaviour('without a provider’s window a re-run is never too late', ['time'], async (scene) => {
    await scene.take({ crossing: true, effect: 'write-idempotent' });
    await scene.advance(400 * day);
    await scene.take({ crossing: true, effect: 'write-idempotent', for: 'rerun', rerunWithinMs: null });
  }),

  behaviour(
    'while the clock is unsteady, no provider’s window is trusted',
    ['time', 'unsteady'],
    async (scene) => {
      await scene.take({ crossing: true, keyed: true });
      await scene.lapse();
      await scene.unsteady(true);
      await scene.lose({ keyed: true, for: 'rerun', rerunWithinMs: 30 * day });
      await scene.unsteady(false);
      await scene.take({ keyed: true, for: 'rerun', rerunWithinMs: 30 * day });
    },
  ),

  behaviour(
    'a first dispatch under an unsteady clock opens no provider’s window',
    ['time', 'unsteady'],
    async (scene) => {
      const keyed = { crossing: true, keyed: true, rerunWithinMs: 23 * hour } as const;
      await scene.unsteady(true, 2 * day);
      await scene.take(keyed);
      await scene.unsteady(false);
      // By the wrong stamp there would be another day left; the provider forgot the key six hours ago.
      await scene.advance(30 * hour);
      await scene.lose({ ...keyed, for: 'rerun' });
    },
  ),

  behaviour(
    'a request without a key is not covered by a contract that sends one later',
    ['time'],
    async (scene) => {
      const bare = await scene.take({ crossing: true, keyed: false });
      await scene.lapse();
      const keyed = { keyed: true, rerunWithinMs: 23 * hour } as const;
      await scene.lose({ ...keyed, crossing: true, for: 'rerun' });
      // Nor after a verifier of the new contract held it for a while.
      await scene.take({ ...keyed, for: 'verify' });
      await scene.lapse();
      await scene.lose({ ...keyed, crossing: true, for: 'rerun' });
      // Once everything so far is known not to have landed, the new contract's own key counts.
      const verifier = await scene.take({ ...keyed, for: 'verify' });
      assert.equal(verifier.record.doubtFence, bare.fence);
      await scene.advance(12 * 60_000);
      await verifier.renew();
      await verifier.cleared({ crossing: true });
      await verifier.send();
      await scene.lapse();
      await scene.take({ ...keyed, crossing: true, for: 'rerun' });
    },
  ),

  behaviour('a target that honours our key gets the first args again', ['time'], async (scene) => {
    const keyed = { crossing: true, keyed: true, rerunWithinMs: hour } as const;
    await scene.take({ ...keyed, args: '{"body":"first"}', content: 'first' });
    await scene.lapse();
    const rerun = await scene.take({ ...keyed, for: 'rerun', args: '{"body":"second"}', content: 'second' });
    assert.equal(rerun.record.args, '{"body":"first"}');
    assert.equal(rerun.record.content, 'first');
  }),

  behaviour('a verifier asks about the args that were sent', ['time'], async (scene) => {
    await scene.take({ crossing: true, args: '{"body":"first"}' });
    await scene.lapse();
    const verifier = await scene.take({ for: 'verify', args: '{"body":"second"}' });
    assert.equal(verifier.record.args, '{"body":"first"}');
    await verifier.settle('unknown');
    const next = await scene.take({ for: 'verify', args: '{"body":"third"}' });
    assert.equal(next.record.args, '{"body":"first"}');
  }),

  behaviour("the provider's id of an attempt in doubt is kept as evidence", [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    const result = { text: null, omitted: 'it is not known to have landed', remoteRef: 'msg_1' };
    await holder.settle('unknown', { result });
    const verifier = await scene.take({ for: 'verify' });
    assert.equal(verifier.record.result?.remoteRef, 'msg_1');
    await verifier.settle('unknown');
    assert.equal((await scene.read()).result?.remoteRef, 'msg_1');
  }),

  behaviour('before any dispatch, the newest args count', ['time'], async (scene) => {
    await scene.take({ keyed: true, args: '{"body":"first"}' });
    await scene.lapse();
    const next = await scene.take({ keyed: true, args: '{"body":"second"}' });
    assert.equal(next.record.args, '{"body":"second"}');
  }),

  behaviour('a holder may renew after its lease unless somebody took over', ['time'], async (scene) => {
    const holder = await scene.take();
    await scene.advance(5 * lease);
    const { held, record } = await holder.renew();
    assert.equal(held, true);
    assert.equal(record?.lapsed, false);
    assert.equal(record?.leaseLeftMs, lease);
    await scene.lose();
  }),

  behaviour('a renewal extends the lease from now, and changes nothing else', ['time'], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await scene.advance(lease / 2);
    const { record } = await holder.renew(3 * lease);
    assert.equal(record?.leaseLeftMs, 3 * lease);
    assert.equal(record?.fence, holder.fence);
    assert.equal(record?.lastDispatchedAt, holder.record.lastDispatchedAt);
    await scene.advance(3 * lease - 1);
    await scene.lose({ for: 'verify' });
  }),

  behaviour(
    'a zombie after a takeover can neither renew, dispatch, clear nor settle',
    ['time'],
    async (scene) => {
      const zombie = await scene.take({ crossing: true });
      await scene.lapse();
      const next = await scene.take({ for: 'verify' });
      await unchanged(scene, async () => {
        const renewal = await zombie.renew();
        assert.equal(renewal.held, false);
        assert.equal(renewal.record?.fence, next.fence);
        refusedBecause(await zombie.dispatch(), 'fenced');
        refusedBecause(await zombie.clear(), 'fenced');
        for (const outcome of ['failed', 'released', 'unknown'] as const) {
          const answer = await zombie.settle(outcome);
          assert.deepEqual([answer.settled, answer.fenced, answer.noted], [false, true, 'fenced']);
          assert.equal(answer.record?.fence, next.fence);
        }
      });
      assert.equal((await next.renew()).held, true);
    },
  ),

  behaviour('a zombie after somebody else settled changes nothing', ['time'], async (scene) => {
    for (const outcome of ['succeeded', 'failed', 'released', 'unknown'] as const) {
      const key = `mail.send/=${outcome}`;
      const zombie = await scene.take({ key });
      await scene.lapse();
      const next = await scene.take({ key, crossing: true });
      await next.settle(outcome);
      await unchanged(
        scene,
        async () => {
          assert.equal((await zombie.renew()).held, false);
          refusedBecause(await zombie.dispatch(), 'fenced');
          refusedBecause(await zombie.clear(), 'fenced');
          assert.equal((await zombie.settle('failed')).settled, false);
        },
        key,
      );
    }
  }),

  behaviour('a zombie after its record was pruned changes nothing', ['time'], async (scene) => {
    const zombie = await scene.take();
    await scene.advance(window);
    await scene.pruneAll();
    const { held, record } = await zombie.renew();
    assert.equal(held, false);
    assert.equal(record, undefined);
    refusedBecause(await zombie.dispatch(), 'fenced');
    refusedBecause(await zombie.clear(), 'fenced');
    assert.equal((await zombie.settle('failed')).record, undefined);
    const next = await scene.take();
    assert.ok(next.fence > zombie.fence, 'a zombie must never share its fence');
    assert.equal((await zombie.renew()).held, false);
    assert.equal((await zombie.settle('released')).settled, false);
    assert.equal((await scene.read()).status, 'running');
  }),
];
