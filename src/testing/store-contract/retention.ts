// How long a record answers for its key, and what may be removed. Nothing depends on removing it.

import assert from 'node:assert/strict';
import { day, failureWindow, hour, lease, resultOf, theKey, theNamespace, window } from './attempt.ts';
import { behaviour, type Scene, unchanged } from './scene.ts';

const ever = { windowMs: window, failureWindowMs: failureWindow, keep: true, periodEndsAt: null };
const none = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };

async function gone({ store }: Scene, key = theKey): Promise<boolean> {
  return (await store.read(theNamespace, key)) === undefined;
}

export const retentionCases = [
  behaviour(
    'a dry run counts what would be removed, in all namespaces, and removes nothing',
    ['time'],
    async (scene) => {
      await (await scene.take()).succeed();
      await (await scene.take({ namespace: 'zoo', retention: ever })).succeed();
      await (await scene.take({ key: 'mail.send/=open' })).settle('unknown');
      await (await scene.take({ key: 'mail.send/=late' })).settle('released');
      assert.equal(await scene.store.countExpired(), 0);
      await scene.advance(window);
      assert.equal(await scene.store.countExpired(), 3);
      assert.ok(!(await gone(scene)));
      assert.equal(await scene.store.prune(100), 3);
      assert.equal(await scene.store.countExpired(), 0);
    },
  ),

  behaviour('records that expire later do not hide those that have expired', ['time'], async (scene) => {
    for (const name of ['a', 'b', 'c', 'd'])
      await scene.take({ key: `mail.send/=${name}`, ...(name === 'c' ? { retention: none } : {}) });
    await scene.lapse();
    assert.equal(await scene.store.prune(1), 1);
    assert.ok(await gone(scene, 'mail.send/=c'));
    assert.equal(await scene.store.prune(1), 0);
  }),

  behaviour('retention works whatever an attempt reported', ['time'], async (scene) => {
    const odd = { code: 'ODD', message: 'a\0b, half \ud800 a pair, \\u0000 and \\\0', retriable: true };
    await (await scene.take({ retention: none })).settle('released', { error: odd });
    await scene.take({ retention: none });
    await scene.take({ key: 'mail.send/=plain', retention: none });
    await scene.lapse();
    assert.equal(await scene.store.prune(10), 2);
    assert.ok(await gone(scene));
  }),

  behaviour('a success answers until its window ends, pruned or not', ['time'], async (scene) => {
    const first = await scene.take({ fingerprint: 'a' });
    await first.succeed();
    await scene.advance(window - 1);
    await scene.lose({ fingerprint: 'a' });
    await scene.lose({ fingerprint: 'b' });
    await scene.advance(1);
    const next = await scene.take({ fingerprint: 'b' });
    assert.equal(next.generation, next.fence);
    assert.ok(next.fence > first.fence);
    assert.equal(next.record.result, null);
    assert.equal(next.record.attempts, 1);
    assert.equal(next.takeover, false);
  }),

  behaviour('a failure answers for its failure window only', ['time'], async (scene) => {
    await (await scene.take({ crossing: true })).settle('failed');
    await scene.advance(failureWindow - 1);
    await scene.lose();
    await scene.advance(1);
    await scene.take();
  }),

  behaviour('for an intent with a period, the window starts at the period’s end', ['time'], async (scene) => {
    const { record } = await scene.take({ key: 'mail.send/=probe' });
    const periodEndsAt = record.readAt + 3 * day;
    await (await scene.take({ retention: { ...ever, keep: false, periodEndsAt } })).succeed();
    assert.equal((await scene.read()).expiresAt, periodEndsAt + window);
    await scene.advance(3 * day + window - 1);
    await scene.lose();
    await scene.advance(1);
    await scene.take();
  }),

  behaviour('a period that is over already does not shorten the window', ['time'], async (scene) => {
    const { record } = await scene.take({ key: 'mail.send/=probe' });
    const periodEndsAt = record.readAt - 3 * day;
    await (await scene.take({ retention: { ...ever, keep: false, periodEndsAt } })).succeed();
    assert.equal((await scene.read()).expiresAt, record.readAt + window);
  }),

  behaviour('a record without a window never answers for its key', [], async (scene) => {
    for (const outcome of ['succeeded', 'failed'] as const) {
      const key = `mail.send/=${outcome}`;
      const first = await scene.take({ key, retention: none, effect: 'write-idempotent' });
      await first.settle(outcome);
      const next = await scene.take({ key, retention: none, effect: 'write-idempotent' });
      assert.ok(next.generation > first.generation);
    }
  }),

  behaviour(
    'a record without a window never answers, also under an unsteady clock',
    ['unsteady'],
    async (scene) => {
      await scene.unsteady(true);
      // Told "done already" instead of being written, the last of A, B, A would be lost.
      await (await scene.take({ retention: none, effect: 'write-idempotent' })).succeed();
      await (await scene.take({ retention: none, effect: 'write-idempotent' })).succeed();
    },
  ),

  behaviour(
    'while the clock is unsteady nothing expires and nothing is pruned',
    ['time', 'unsteady'],
    async (scene) => {
      await (await scene.take()).succeed();
      await scene.take({ key: 'mail.send/=lapsed' });
      await (await scene.take({ key: 'mail.send/=released' })).settle('released');
      await scene.unsteady(true, 400 * day);
      await scene.lose();
      assert.equal(await scene.pruneAll(), 0);
      await scene.unsteady(false);
      await scene.lose();
      await scene.advance(window);
      assert.equal(await scene.pruneAll(), 3);
    },
  ),

  behaviour(
    'what was settled under an unsteady clock does not expire by its wrong time',
    ['time', 'unsteady'],
    async (scene) => {
      for (const offMs of [-2 * day, 2 * day]) {
        const key = `mail.send/=${offMs}`;
        await scene.unsteady(true, offMs);
        await (await scene.take({ key, crossing: true })).succeed();
        await scene.unsteady(false);
        await scene.lose({ key });
        await scene.pruneAll();
        await scene.lose({ key });
      }
    },
  ),

  behaviour('a person can forget a record under an unsteady clock too', ['unsteady'], async (scene) => {
    await (await scene.take()).succeed();
    await scene.unsteady(true);
    await scene.resolved({ type: 'forget' });
    await scene.take();
  }),

  behaviour('a success that is kept for ever never expires', ['time'], async (scene) => {
    await (await scene.take({ retention: ever, fingerprint: 'a' })).succeed();
    await scene.advance(5000 * day);
    await scene.lose({ fingerprint: 'a', retention: ever });
    await scene.lose({ fingerprint: 'b', retention: ever });
    await scene.pruneAll();
    await scene.lose({ fingerprint: 'a', retention: ever });
  }),

  behaviour('a tombstone still reports what it knows', ['time'], async (scene) => {
    const asker = { conversation: 'c', turn: 't', toolCallId: 'call', run: 'r', content: 'words' };
    const holder = await scene.take({ retention: ever, crossing: true, fingerprint: 'f', ...asker });
    const result = resultOf(`"${'long '.repeat(1000)}"`, 'msg_1');
    const { record: settled } = await holder.settle('succeeded', { result });
    await scene.advance(window);
    assert.equal(await scene.pruneAll(), 1);
    const record = await scene.lose({ retention: ever, fingerprint: 'f' });
    assert.equal(record.status, 'succeeded');
    assert.equal(record.fence, holder.fence);
    assert.equal(record.generation, holder.generation);
    assert.equal(record.settledAt, settled?.settledAt);
    assert.equal(record.lastDispatchedAt, settled?.lastDispatchedAt);
    assert.equal(record.fingerprint, 'f');
    assert.equal(record.result?.text, null);
    assert.equal(record.result?.remoteRef, 'msg_1');
    assert.ok(record.result?.omitted);
    for (const field of ['args', 'prepared', ...Object.keys(asker)] as (keyof typeof record)[]) {
      assert.equal(record[field], null, field);
    }
    assert.equal(await scene.pruneAll(), 0, 'a tombstone is made once');
  }),

  behaviour('a small result stays with its key for ever', ['time'], async (scene) => {
    await (await scene.take({ retention: ever })).settle('succeeded', { result: resultOf('"re_1"', null) });
    await scene.advance(100 * day);
    await scene.pruneAll();
    assert.equal((await scene.lose({ retention: ever })).result?.text, '"re_1"');
  }),

  behaviour('an abandoned record is kept for ever if a success would be', ['time'], async (scene) => {
    await (await scene.take({ retention: ever, crossing: true })).settle('unknown');
    await scene.resolved({ type: 'abandon', reason: 'no answer' });
    await scene.advance(100 * day);
    await scene.pruneAll();
    assert.match((await scene.lose()).error?.message ?? '', /may have landed/);
  }),

  behaviour(
    'an abandoned record can be sent unchanged, however late it is reopened',
    ['time'],
    async (scene) => {
      const words = { args: '{"body":"first"}', content: 'first' };
      await (await scene.take({ retention: ever, crossing: true, keyed: true, ...words })).settle('unknown');
      await scene.resolved({ type: 'abandon', reason: 'no answer' });
      await scene.advance(100 * day);
      await scene.pruneAll();
      const reopened = await scene.resolved({ type: 'reopen' });
      assert.equal(reopened.status, 'unknown');
      assert.equal(reopened.args, words.args);
    },
  ),

  behaviour('a refusal is not kept for ever', ['time'], async (scene) => {
    await (await scene.take({ retention: ever, crossing: true })).settle('failed');
    await scene.advance(failureWindow);
    await scene.take({ retention: ever });
  }),

  behaviour('a refusal that was reopened and then landed is kept for ever', ['time'], async (scene) => {
    await (await scene.take({ retention: ever, crossing: true })).settle('failed');
    await scene.resolved({ type: 'reopen' });
    await (await scene.take({ retention: ever, crossing: true })).succeed();
    const late = await scene.take({ key: 'mail.send/=late', retention: ever, crossing: true });
    await late.settle('failed');
    await scene.resolved({ type: 'reopen' }, { key: 'mail.send/=late' });
    await late.settle('succeeded');
    await scene.advance(100 * day);
    for (const key of [theKey, 'mail.send/=late']) {
      assert.equal((await scene.lose({ key, retention: ever })).status, 'succeeded');
    }
  }),

  behaviour(
    'pruning removes expired records in small batches and returns the count',
    ['time'],
    async (scene) => {
      for (let i = 0; i < 7; i += 1) await (await scene.take({ key: `mail.send/=${i}` })).succeed();
      await scene.advance(window - 1);
      assert.equal(await scene.store.prune(100), 0);
      await scene.advance(1);
      assert.equal(await scene.store.prune(3), 3);
      assert.equal(await scene.store.prune(3), 3);
      assert.equal(await scene.store.prune(3), 1);
      assert.equal(await scene.store.prune(3), 0);
      assert.deepEqual(await scene.all(), []);
    },
  ),

  behaviour('pruning reaches expired records behind ones that stay', ['time'], async (scene) => {
    const kept = ['running', 'unknown', 'lapsed', 'again', 'ever'];
    for (const what of kept) {
      const holder = await scene.take({
        key: `a.kept/=${what}`,
        crossing: true,
        ...(what === 'running' ? { leaseMs: 100 * day } : {}),
        ...(what === 'ever' ? { retention: ever } : {}),
      });
      if (what === 'unknown' || what === 'again') await holder.settle('unknown');
      if (what === 'ever') await holder.succeed();
      if (what === 'again') await scene.resolved({ type: 'runAgain' }, { key: 'a.kept/=again' });
    }
    for (let i = 0; i < 5; i += 1) await (await scene.take({ key: `b.gone/=${i}` })).succeed();
    await scene.advance(2 * window);
    assert.equal(await scene.pruneAll(1), 6, 'five records and the result of the one that is kept for ever');
    assert.deepEqual(
      (await scene.all()).map(({ key }) => key).sort(),
      kept.map((what) => `a.kept/=${what}`).sort(),
    );
  }),

  behaviour('a released record is removed after its failure window', ['time'], async (scene) => {
    await (await scene.take({ crossing: true })).settle('released');
    await scene.advance(failureWindow - 1);
    assert.equal(await scene.pruneAll(), 0);
    await scene.advance(1);
    assert.equal(await scene.pruneAll(), 1);
    assert.equal(await gone(scene), true);
  }),

  behaviour('an attempt that died before dispatch counts as released', ['time'], async (scene) => {
    await scene.take();
    await scene.advance(lease);
    assert.equal(await scene.pruneAll(), 0);
    await scene.advance(failureWindow);
    assert.equal(await scene.pruneAll(), 1);
    assert.equal(await gone(scene), true);
  }),

  behaviour('a running record is never removed, however long it runs', ['time'], async (scene) => {
    const holder = await scene.take({ leaseMs: 400 * day });
    await scene.advance(399 * day);
    assert.equal(await scene.pruneAll(), 0);
    assert.equal((await holder.succeed()).settled, true);
  }),

  behaviour('no fence is used twice, also after its record was removed', ['time'], async (scene) => {
    let last = 0;
    for (let round = 0; round < 3; round += 1) {
      let holder = await scene.take();
      assert.ok(holder.fence > last);
      for (let i = 0; i < 3; i += 1) {
        await holder.settle('released');
        holder = await scene.take();
      }
      await holder.succeed();
      last = holder.fence;
      await scene.advance(window);
      assert.equal(await scene.pruneAll(), 1);
    }
  }),

  behaviour('no fence is used twice, also after its record was forgotten and removed', [], async (scene) => {
    const first = await scene.take();
    await first.succeed();
    const forgotten = await scene.resolved({ type: 'forget' });
    assert.equal(await scene.pruneAll(), 1);
    const next = await scene.take();
    assert.ok(next.fence > forgotten.fence);
    assert.equal(next.generation, next.fence);
  }),

  behaviour('once its record is removed, a key is free for any intent', ['time'], async (scene) => {
    await (await scene.take({ fingerprint: 'a' })).succeed();
    await scene.advance(window);
    await scene.pruneAll();
    await scene.take({ fingerprint: 'b' });
  }),

  behaviour('removing a record removes its history, and no other', ['time'], async (scene) => {
    const other = 'mail.send/=other';
    const about = { namespace: theNamespace, generation: 1, fence: 1, detail: { conversation: 'c' } };
    await scene.take({ key: theKey });
    await scene.lapse();
    await (await scene.take({ key: theKey })).succeed();
    await scene.take({ key: other, leaseMs: 400 * day });
    for (const key of [theKey, other]) {
      await scene.store.append([
        { ...about, key, type: 'replayed' },
        { ...about, key, type: 'conflict' },
      ]);
    }
    assert.deepEqual(await scene.eventTypes(theKey), ['takeover', 'replayed', 'conflict']);
    await scene.advance(window);
    assert.equal(await scene.pruneAll(), 1);
    assert.deepEqual(await scene.eventTypes(theKey), []);
    assert.deepEqual(await scene.eventTypes(other), ['replayed', 'conflict']);
  }),

  behaviour('a tombstone keeps the outcome, not the caller’s ids', ['time'], async (scene) => {
    const { fence, generation } = await scene.take({ retention: ever });
    await scene.lapse();
    await (await scene.take({ retention: ever })).succeed();
    const about = { namespace: theNamespace, key: theKey, generation, fence, detail: {} };
    await scene.store.append([
      { ...about, type: 'replayed' },
      { ...about, type: 'conflict' },
      { ...about, type: 'observed' },
    ]);
    await scene.advance(window);
    assert.equal(await scene.pruneAll(), 1);
    assert.deepEqual(await scene.eventTypes(theKey), ['takeover']);
  }),

  behaviour(
    'reading, listing and lost claims do not change when a record expires',
    ['time'],
    async (scene) => {
      await (await scene.take()).succeed();
      await scene.advance(window - hour);
      await unchanged(scene, async () => {
        await scene.lose();
        await scene.all();
      });
      await scene.advance(hour);
      await scene.take();
    },
  ),
];
