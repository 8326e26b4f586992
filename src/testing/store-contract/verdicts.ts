// A person's acts. Each compares what was looked at with what is there, and takes the next fence.

import assert from 'node:assert/strict';
import { hour, lease, quiet, refusedBecause, resultOf, window } from './attempt.ts';
import { behaviour, refusedAs, type Scene, seenIn, unchanged } from './scene.ts';

const landed = { type: 'landed', result: resultOf('"seen"', 'msg_9') } as const;
const notLanded = { type: 'notLanded' } as const;
const runAgain = { type: 'runAgain' } as const;
const abandon = { type: 'abandon', reason: 'the customer left' } as const;
const died = { type: 'died' } as const;
const forget = { type: 'forget' } as const;
const reopen = { type: 'reopen' } as const;
const onDoubt = [landed, notLanded, runAgain, abandon];

async function inDoubt(scene: Scene, over = {}) {
  const dead = await scene.take({ crossing: true, ...over });
  await scene.advance(quiet);
  return dead;
}

export const verdictCases = [
  behaviour('"landed" settles with the given result', ['time'], async (scene) => {
    const dead = await inDoubt(scene);
    const record = await scene.resolved(landed);
    assert.equal(record.status, 'succeeded');
    assert.equal(record.doubtFence, null);
    assert.equal(record.fence, dead.fence + 1);
    assert.equal(record.generation, dead.generation);
    assert.deepEqual((await scene.lose()).result, landed.result);
    assert.equal((await dead.renew()).held, false);
  }),

  behaviour('"not landed" clears the doubt and frees the record', ['time'], async (scene) => {
    const dead = await inDoubt(scene);
    const record = await scene.resolved(notLanded);
    assert.deepEqual([record.status, record.doubtFence], ['released', null]);
    refusedBecause(await dead.dispatch(), 'fenced');
    const next = await scene.take();
    assert.equal(next.generation, dead.generation);
    assert.equal((await next.settle('released')).record?.status, 'released');
  }),

  behaviour('"died" ends a lease before its time: what was not dispatched is free', [], async (scene) => {
    const dead = await scene.take();
    const record = await scene.resolved(died);
    assert.deepEqual([record.status, record.doubtFence, record.fence], ['released', null, dead.fence + 1]);
    refusedBecause(await dead.dispatch(), 'fenced');
    assert.equal((await dead.renew()).held, false);
    assert.equal((await scene.take()).generation, dead.generation);
  }),

  behaviour(
    '"died" ends a lease before its time: what was dispatched is in doubt',
    ['time'],
    async (scene) => {
      const dead = await scene.take({ crossing: true });
      const record = await scene.resolved(died);
      assert.deepEqual([record.status, record.inDoubt, record.doubtFence], ['unknown', true, dead.fence]);
      await scene.lose();
      refusedAs(await scene.resolve(died), 'not running');
      // Its processes send nothing more: only what they sent can still be on its way.
      refusedAs(await scene.resolve(notLanded), 'early');
      await scene.advance(record.networkMs);
      assert.equal((await scene.resolved(notLanded)).status, 'released');
    },
  ),

  behaviour(
    '"died" while something may still send: "not landed" waits as long as the attempt could send',
    ['time'],
    async (scene) => {
      await scene.take({ crossing: true });
      const record = await scene.resolved({ type: 'died', mayStillSend: true });
      assert.deepEqual([record.status, record.inDoubt], ['unknown', true]);
      await scene.advance(quiet - 1);
      refusedAs(await scene.resolve(notLanded), 'early');
      await scene.advance(1);
      assert.equal((await scene.resolved(notLanded)).status, 'released');
    },
  ),

  behaviour('"died" for an attempt other than the running one changes nothing', ['time'], async (scene) => {
    const dead = await scene.take();
    const seen = seenIn(await scene.read());
    await scene.lapse();
    const next = await scene.take();
    await unchanged(scene, async () => refusedAs(await scene.resolve(died, { seen }), 'stale'));
    assert.equal((await next.renew()).held, true);
    assert.equal((await dead.renew()).held, false);
  }),

  behaviour(
    '"not landed" is not accepted while a request may be in flight, unless forced',
    ['time'],
    async (scene) => {
      const dead = await scene.take({ crossing: true });
      await scene.lapse();
      await unchanged(scene, async () => refusedAs(await scene.resolve(notLanded), 'early'));
      await scene.advance(quiet - lease - 1);
      refusedAs(await scene.resolve(notLanded), 'early');
      assert.equal((await scene.resolved(notLanded, { force: true })).status, 'released');
      assert.equal((await dead.renew()).held, false);
    },
  ),

  behaviour(
    '"not landed" is not accepted under an unsteady clock, unless forced',
    ['time', 'unsteady'],
    async (scene) => {
      await inDoubt(scene);
      await scene.unsteady(true);
      refusedAs(await scene.resolve(notLanded), 'early');
      assert.equal((await scene.resolved(notLanded, { force: true })).status, 'released');
    },
  ),

  behaviour('the other verdicts do not wait for requests in flight', ['time'], async (scene) => {
    for (const act of [landed, runAgain, abandon]) {
      const key = `mail.send/=${act.type}`;
      await scene.take({ key, crossing: true });
      await scene.lapse();
      await scene.resolved(act, { key });
    }
  }),

  behaviour('"run it again" frees the record and keeps the doubt', ['time'], async (scene) => {
    const dead = await inDoubt(scene);
    const record = await scene.resolved(runAgain);
    assert.deepEqual([record.status, record.doubtFence, record.expiresAt], ['released', dead.fence, null]);
    await scene.lose({ fingerprint: 'another' });
    const again = await scene.take({ crossing: true });
    assert.equal(again.record.doubtFence, dead.fence);
    assert.equal((await again.settle('released')).record?.status, 'unknown');
  }),

  behaviour('"run it again" is never pruned and never expires', ['time'], async (scene) => {
    await inDoubt(scene);
    await scene.resolved(runAgain);
    await scene.advance(1000 * window);
    assert.equal(await scene.pruneAll(), 0);
    await scene.take();
  }),

  behaviour('"run it again" can be revised', ['time'], async (scene) => {
    for (const act of onDoubt) {
      const key = `mail.send/=${act.type}`;
      await inDoubt(scene, { key });
      await scene.resolved(runAgain, { key });
      await scene.resolved(act, { key });
    }
    // Without that, another intent under the same key would be shut out for good.
    await scene.take({ key: 'mail.send/=notLanded', fingerprint: 'another' });
  }),

  behaviour('"run it again" restarts the provider’s window', ['time'], async (scene) => {
    await inDoubt(scene, { keyed: true, rerunWithinMs: 1 });
    await scene.resolved(runAgain);
    const again = await scene.take({ keyed: true, rerunWithinMs: hour });
    await again.send();
    await again.send();
  }),

  behaviour(
    'an abandoned record answers as long as a success would, and may have landed',
    ['time'],
    async (scene) => {
      const dead = await inDoubt(scene);
      const record = await scene.resolved(abandon);
      assert.equal(record.status, 'failed');
      assert.equal(record.doubtFence, dead.fence);
      assert.match(record.error?.message ?? '', /may have landed.*the customer left/);
      await scene.advance(window - 1);
      await scene.lose();
      await scene.advance(1);
      await scene.take();
    },
  ),

  behaviour(
    '"not landed" is judged by when it was decided, not by when it arrives',
    ['time'],
    async (scene) => {
      await scene.take({ crossing: true });
      await scene.lapse();
      const { readAt } = await scene.read();
      await scene.advance(quiet);
      await unchanged(scene, async () => {
        refusedAs(await scene.resolve(notLanded, { decidedAt: readAt }), 'early');
      });
      await scene.resolved(notLanded, { decidedAt: (await scene.read()).readAt });
    },
  ),

  behaviour('a verdict on another fence is stale', ['time'], async (scene) => {
    await inDoubt(scene);
    const seen = seenIn(await scene.read());
    await (await scene.take({ for: 'verify' })).settle('unknown');
    await unchanged(scene, async () => {
      for (const act of onDoubt) {
        const answer = await scene.resolve(act, { seen, force: true });
        refusedAs(answer, 'stale');
        assert.equal(answer.record?.fence, seen.fence + 1, 'it tells what is there now');
      }
    });
  }),

  behaviour('a verdict on another dispatch of the same fence is stale', ['time'], async (scene) => {
    const holder = await scene.take({ leaseMs: lease });
    await holder.send();
    await scene.lapse();
    const seen = seenIn(await scene.read());
    await holder.renew();
    await holder.send();
    await scene.advance(quiet);
    for (const act of onDoubt) {
      refusedAs(await scene.resolve(act, { seen }), 'stale');
      refusedAs(await scene.resolve(act, { seen, force: true }), 'stale');
    }
  }),

  behaviour(
    'a verdict on a holder that woke up is stale, though it has not sent again',
    ['time'],
    async (scene) => {
      const holder = await scene.take({ crossing: true });
      await scene.lapse();
      const seen = seenIn(await scene.read());
      await holder.renew();
      refusedAs(await scene.resolve(landed, { seen }), 'stale');
      await scene.advance(quiet);
      refusedAs(await scene.resolve(notLanded, { seen }), 'stale');
    },
  ),

  behaviour('a verdict on a verifier that woke up is refused while it runs', ['time'], async (scene) => {
    await inDoubt(scene);
    const verifier = await scene.take({ for: 'verify' });
    await scene.lapse();
    const seen = seenIn(await scene.read());
    await verifier.renew();
    refusedAs(await scene.resolve(notLanded, { seen }), 'running');
  }),

  behaviour('of two verdicts on the same state the second is stale', ['time'], async (scene) => {
    await inDoubt(scene);
    const seen = seenIn(await scene.read());
    await scene.resolved(notLanded, { seen });
    refusedAs(await scene.resolve(landed, { seen }), 'stale');
    assert.equal((await scene.read()).status, 'released');
  }),

  behaviour('a running attempt cannot be resolved without force', [], async (scene) => {
    await scene.take({ crossing: true });
    await unchanged(scene, async () => {
      for (const act of onDoubt) refusedAs(await scene.resolve(act), 'running');
      refusedAs(await scene.resolve(forget), 'not settled');
      refusedAs(await scene.resolve(reopen), 'not failed');
    });
  }),

  behaviour('a forced verdict fences the running attempt', [], async (scene) => {
    for (const act of onDoubt) {
      const key = `mail.send/=${act.type}`;
      const holder = await scene.take({ key, crossing: true });
      const record = await scene.resolved(act, { key, force: true });
      assert.equal(record.fence, holder.fence + 1);
      assert.equal((await holder.renew()).held, false);
      refusedBecause(await holder.dispatch(), 'fenced');
    }
  }),

  behaviour('a settled record has nothing to decide', [], async (scene) => {
    for (const outcome of ['succeeded', 'failed', 'released'] as const) {
      const key = `mail.send/=${outcome}`;
      await (await scene.take({ key, crossing: true })).settle(outcome);
      await unchanged(
        scene,
        async () => {
          for (const act of onDoubt) {
            refusedAs(await scene.resolve(act, { key }), 'settled');
            refusedAs(await scene.resolve(act, { key, force: true }), 'settled');
          }
        },
        key,
      );
    }
  }),

  behaviour('a record that does not exist cannot be resolved', [], async (scene) => {
    for (const act of [...onDoubt, forget, reopen]) {
      const answer = await scene.resolve(act);
      refusedAs(answer, 'gone');
      assert.equal(answer.record, undefined);
    }
  }),

  behaviour('a forgotten record starts a new generation above its fence', [], async (scene) => {
    for (const outcome of ['succeeded', 'failed'] as const) {
      const key = `mail.send/=${outcome}`;
      const holder = await scene.take({ key, crossing: true });
      await holder.settle(outcome);
      const forgotten = await scene.resolved(forget, { key });
      assert.equal(forgotten.status, outcome);
      const next = await scene.take({ key });
      assert.equal(next.generation, next.fence);
      assert.ok(next.fence > forgotten.fence);
      assert.equal((await holder.settle('failed')).settled, false);
    }
  }),

  behaviour('a key that is kept for ever can be forgotten', [], async (scene) => {
    const ever = { windowMs: window, failureWindowMs: hour, keep: true, periodEndsAt: null };
    await (await scene.take({ retention: ever })).succeed();
    await scene.resolved(forget);
    await scene.take({ retention: ever });
  }),

  behaviour('an open record cannot be forgotten', ['time'], async (scene) => {
    await (await scene.take({ key: 'mail.send/=released' })).settle('released');
    await (await scene.take({ key: 'mail.send/=unknown', crossing: true })).settle('unknown');
    await inDoubt(scene, { key: 'mail.send/=lapsed' });
    for (const state of ['released', 'unknown', 'lapsed']) {
      refusedAs(await scene.resolve(forget, { key: `mail.send/=${state}`, force: true }), 'not settled');
    }
  }),

  behaviour('only a failure can be reopened', ['time'], async (scene) => {
    await (await scene.take({ key: 'mail.send/=succeeded' })).settle('succeeded');
    await (await scene.take({ key: 'mail.send/=released' })).settle('released');
    await inDoubt(scene, { key: 'mail.send/=lapsed' });
    for (const state of ['succeeded', 'released', 'lapsed']) {
      refusedAs(await scene.resolve(reopen, { key: `mail.send/=${state}`, force: true }), 'not failed');
    }
  }),

  behaviour(
    'an expired failure is not reopened: another record may answer by now',
    ['time'],
    async (scene) => {
      await (await scene.take({ crossing: true })).settle('failed');
      await inDoubt(scene, { key: 'mail.send/=given-up' });
      await scene.resolved(abandon, { key: 'mail.send/=given-up' });
      await scene.advance(window + hour);
      refusedAs(await scene.resolve(reopen), 'gone');
      refusedAs(await scene.resolve(reopen, { key: 'mail.send/=given-up', force: true }), 'gone');
    },
  ),

  behaviour('a reopened refusal is free, under a fresh key in the same generation', [], async (scene) => {
    const holder = await scene.take({ keyed: true, crossing: true });
    await holder.settle('failed');
    const record = await scene.resolved(reopen);
    assert.equal(record.status, 'released');
    const next = await scene.take({ keyed: true, crossing: true });
    assert.equal(next.generation, holder.generation);
    assert.ok(next.record.providerKeyFence > holder.record.providerKeyFence);
  }),

  behaviour('a reopened refusal may get new args', [], async (scene) => {
    const holder = await scene.take({ keyed: true, args: '{"body":"refused"}', content: 'refused' });
    await holder.send({ prepared: '"refused"' });
    await holder.settle('failed');
    await scene.resolved(reopen);
    const next = await scene.take({ keyed: true, args: '{"body":"corrected"}', content: 'corrected' });
    assert.equal(next.record.args, '{"body":"corrected"}');
    assert.equal(next.record.content, 'corrected');
    assert.equal((await next.send({ prepared: '"corrected"' })).prepared, '"corrected"');
  }),

  behaviour('an abandoned record that is reopened is in doubt again', ['time'], async (scene) => {
    const dead = await inDoubt(scene);
    await scene.resolved(abandon);
    const record = await scene.resolved(reopen);
    assert.deepEqual([record.status, record.doubtFence, record.inDoubt], ['unknown', dead.fence, true]);
    assert.equal(record.expiresAt, null);
    await scene.lose();
    await scene.resolved(landed);
  }),

  behaviour(
    'every verdict is in the history, with who, why and the state before',
    ['time'],
    async (scene) => {
      const dead = await inDoubt(scene);
      await scene.resolved(abandon, { by: 'ada', note: 'seen in the mailbox' });
      const event = (await scene.events()).at(-1);
      assert.equal(event?.type, 'resolved');
      assert.equal(event.detail.act, 'abandon');
      assert.equal(event.detail.by, 'ada');
      assert.equal(event.detail.note, 'seen in the mailbox');
      assert.equal(event.detail.reason, 'the customer left');
      assert.equal(event.detail.force, false);
      assert.deepEqual(event.detail.before, {
        status: 'running',
        fence: dead.fence,
        doubtFence: null,
        dispatchedAt: dead.record.lastDispatchedAt,
      });
    },
  ),
];
