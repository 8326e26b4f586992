// A lost reply is asked again with the same token, and answers "yours"; a closed token claims nothing more.

import assert from 'node:assert/strict';
import type { Act } from '../../store/store.ts';
import { claimRequest, lease, newToken, quiet, resultOf, theKey, theNamespace } from './attempt.ts';
import { behaviour, refusedAs, seenIn, unchanged } from './scene.ts';

export const repeatedCallCases = [
  behaviour('retrying a claim returns the same claim', [], async (scene) => {
    const request = claimRequest({ crossing: true });
    const first = await scene.store.claim(request);
    assert.ok(first.won);
    await unchanged(scene, async () => {
      for (const store of [scene.store, scene.elsewhere]) {
        const again = await store.claim(request);
        assert.ok(again.won);
        assert.equal(again.record.fence, first.record.fence);
        assert.equal(again.record.attempts, 1);
      }
    });
  }),

  behaviour('retrying a takeover returns the same claim', ['time'], async (scene) => {
    await scene.take({ crossing: true });
    await scene.lapse();
    const request = claimRequest({ for: 'verify' });
    await scene.store.claim(request);
    await unchanged(scene, async () => assert.equal((await scene.store.claim(request)).won, true));
    assert.deepEqual(await scene.eventTypes(), ['takeover']);
  }),

  behaviour(
    'retrying a claim after its lease returns it unless somebody took over',
    ['time'],
    async (scene) => {
      const request = claimRequest();
      await scene.store.claim(request);
      await scene.advance(3 * lease);
      const again = await scene.store.claim(request);
      assert.ok(again.won);
      assert.equal(again.record.lapsed, true, 'it tells that there is no time left');
    },
  ),

  behaviour('a delayed duplicate of a claim that was closed is refused', [], async (scene) => {
    for (const outcome of ['succeeded', 'failed', 'released', 'unknown'] as const) {
      const request = claimRequest({ key: `mail.send/=${outcome}`, crossing: true });
      const holder = await scene.take(request);
      await holder.settle(outcome);
      await unchanged(
        scene,
        async () => {
          const again = await scene.store.claim(request);
          assert.equal(again.won, false);
          assert.equal(again.record?.status, outcome);
        },
        request.key,
      );
    }
  }),

  behaviour('a delayed duplicate of a claim is refused after its record expired', ['time'], async (scene) => {
    const request = claimRequest();
    await (await scene.take(request)).succeed();
    await scene.advance(10 * 24 * 3_600_000);
    assert.equal((await scene.store.claim(request)).won, false);
    await scene.take();
  }),

  behaviour(
    'late copies of a claim and of its ending do not settle a later generation',
    ['time'],
    async (scene) => {
      const request = claimRequest({ crossing: true });
      const holder = await scene.take(request);
      await holder.succeed();
      await scene.advance(10 * 24 * 3_600_000);
      await scene.pruneAll();
      // With the record gone nobody can know that the token was used: the late copy would claim for a caller that is gone.
      assert.equal((await scene.store.claim(request)).won, true);
      const answer = await holder.succeed();
      assert.equal(answer.fenced, true);
      assert.equal((await scene.read()).status, 'running', 'nothing landed in this generation');
      assert.equal((await holder.renew()).held, false);
    },
  ),

  behaviour('a delayed duplicate of a claim loses to the worker that took over', ['time'], async (scene) => {
    const request = claimRequest();
    await scene.take(request);
    await scene.lapse();
    const next = await scene.take();
    const again = await scene.store.claim(request);
    assert.equal(again.won, false);
    assert.equal(again.record?.fence, next.fence);
  }),

  behaviour('retrying a renewal succeeds', [], async (scene) => {
    const holder = await scene.take();
    for (let i = 0; i < 3; i += 1) {
      const { held, record } = await holder.renew();
      assert.deepEqual([held, record?.fence, record?.attempts], [true, holder.fence, 1]);
    }
  }),

  behaviour('retrying a dispatch succeeds', [], async (scene) => {
    const holder = await scene.take();
    const first = await holder.send({ prepared: '"once"' });
    const again = await holder.send({ prepared: '"once"' });
    assert.equal(again.firstDispatchedAt, first.firstDispatchedAt);
    assert.equal(again.prepared, '"once"');
    assert.equal(again.attempts, 1);
  }),

  behaviour('retrying a clear succeeds and counts as one verdict', ['time'], async (scene) => {
    for (const crossing of [false, true]) {
      for (const freshKey of [false, true]) {
        const key = `mail.send/=${crossing}-${freshKey}`;
        await scene.take({ key, crossing: true });
        await scene.advance(quiet);
        const verifier = await scene.take({ key, for: 'verify' });
        const first = await verifier.cleared({ crossing, freshKey });
        const again = await verifier.cleared({ crossing, freshKey });
        assert.deepEqual(
          [again.dispatched, again.doubtFence, again.providerKeyFence],
          [crossing, null, first.providerKeyFence],
        );
        assert.equal((await scene.eventTypes(key)).filter((type) => type === 'cleared').length, 1);
      }
    }
  }),

  behaviour('retrying a clear after its dispatch succeeds', ['time'], async (scene) => {
    await scene.take({ crossing: true });
    await scene.advance(quiet);
    const verifier = await scene.take({ for: 'verify' });
    await verifier.cleared();
    const sent = await verifier.send();
    assert.equal((await verifier.cleared()).lastDispatchedAt, sent.lastDispatchedAt);
  }),

  behaviour('retrying a settlement succeeds, whatever its outcome', [], async (scene) => {
    for (const outcome of ['succeeded', 'failed', 'released', 'unknown'] as const) {
      const key = `mail.send/=${outcome}`;
      const holder = await scene.take({ key, crossing: true });
      await holder.settle(outcome);
      await unchanged(
        scene,
        async () => {
          const { settled, fenced, noted, record } = await holder.settle(outcome);
          assert.deepEqual([settled, fenced, noted], [true, false, undefined]);
          assert.equal(record?.status, outcome);
        },
        key,
      );
      assert.deepEqual(await scene.eventTypes(key), []);
    }
  }),

  behaviour(
    'retrying a settlement that a doubt turned into "unknown" changes nothing',
    ['time'],
    async (scene) => {
      for (const outcome of ['released', 'failed'] as const) {
        const key = `mail.send/=${outcome}`;
        await scene.take({ key, crossing: true });
        await scene.lapse();
        const rerun = await scene.take({ key, crossing: true, for: 'rerun' });
        await rerun.settle(outcome);
        await unchanged(
          scene,
          async () => {
            const { settled, record } = await rerun.settle(outcome);
            assert.deepEqual([settled, record?.status], [true, 'unknown']);
          },
          key,
        );
      }
    },
  ),

  behaviour('a late success reported twice is not a second effect', ['time'], async (scene) => {
    for (const state of ['unknown', 'running', 'used'] as const) {
      const key = `mail.send/=${state}`;
      const zombie = await scene.take({ key, crossing: true });
      await scene.lapse();
      const holder = await scene.take({ key, for: 'verify' });
      if (state === 'unknown') await holder.settle('unknown');
      await zombie.succeed();
      if (state === 'used') await holder.settle('unknown');
      const before = await scene.eventTypes(key);
      await unchanged(scene, () => zombie.succeed(), key);
      assert.deepEqual(await scene.eventTypes(key), before);
      assert.equal(before.includes('duplicate'), false);
    }
  }),

  behaviour('a second effect reported twice is one duplicate', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    const rerun = await scene.take({ crossing: true, for: 'rerun' });
    await zombie.succeed();
    await rerun.succeed();
    await zombie.succeed();
    await rerun.succeed();
    assert.deepEqual(await scene.eventTypes(), ['takeover', 'lateNews', 'duplicate']);
  }),

  behaviour(
    'retrying a settlement that yielded to a late success finds that success',
    ['time'],
    async (scene) => {
      const zombie = await scene.take({ crossing: true });
      await scene.lapse();
      const holder = await scene.take({ for: 'verify' });
      await zombie.succeed('"late"');
      await holder.settle('unknown');
      await unchanged(scene, async () => {
        assert.equal((await holder.settle('unknown')).record?.result?.text, '"late"');
      });
    },
  ),

  behaviour('retrying a verdict succeeds, whatever it was', ['time'], async (scene) => {
    const acts: [Act, 'unknown' | 'failed'][] = [
      [{ type: 'landed', result: resultOf('"seen"') }, 'unknown'],
      [{ type: 'notLanded' }, 'unknown'],
      [{ type: 'runAgain' }, 'unknown'],
      [{ type: 'abandon', reason: 'enough' }, 'unknown'],
      [{ type: 'forget' }, 'failed'],
      [{ type: 'reopen' }, 'failed'],
    ];
    for (const [act, from] of acts) {
      const key = `mail.send/=${act.type}`;
      await (await scene.take({ key, crossing: true })).settle(from);
      await scene.advance(quiet);
      const request = { key, seen: seenIn(await scene.read(key)), token: newToken() };
      const first = await scene.resolved(act, request);
      await unchanged(
        scene,
        async () => assert.equal((await scene.resolved(act, request)).fence, first.fence),
        key,
      );
      assert.deepEqual(await scene.eventTypes(key), ['resolved']);
    }
  }),

  behaviour('retrying a verdict after somebody acted on it is stale', ['time'], async (scene) => {
    await (await scene.take({ crossing: true })).settle('unknown');
    await scene.advance(quiet);
    const request = { seen: seenIn(await scene.read()), token: newToken() };
    await scene.resolved({ type: 'notLanded' }, request);
    await scene.take({ crossing: true });
    await unchanged(scene, async () =>
      refusedAs(await scene.resolve({ type: 'notLanded' }, request), 'stale'),
    );
    assert.equal((await scene.store.read(theNamespace, theKey))?.status, 'running');
  }),

  behaviour('pruning and opening are safe to repeat', [], async (scene) => {
    assert.equal(await scene.store.prune(10), 0);
    assert.equal(await scene.store.prune(10), 0);
    const first = await scene.store.open();
    assert.equal((await scene.store.open()).kind, first.kind);
  }),
];
