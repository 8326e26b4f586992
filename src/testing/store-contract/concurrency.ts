// Many at once: every method is one atomic step, also from another handle on the same data.

import assert from 'node:assert/strict';
import type { ClaimRequest, Store } from '../../store/store.ts';
import { attemptOf, claimRequest, newToken, theKey, theNamespace } from './attempt.ts';
import { behaviour, type Scene, seenIn, still } from './scene.ts';

const many = 50;

/** Claims from both handles in turn, all under way at once. */
async function race(scene: Scene, over: (i: number) => Partial<ClaimRequest> = () => ({})) {
  const entries = Array.from({ length: many }, (_, i) => ({
    store: i % 2 === 0 ? scene.store : scene.elsewhere,
    request: claimRequest(over(i)),
  }));
  const answers = await Promise.all(
    entries.map(async ({ store, request }) => ({ store, request, answer: await store.claim(request) })),
  );
  const winners = answers.filter(({ answer }) => answer.won);
  const losers = answers.filter(({ answer }) => !answer.won);
  assert.equal(winners.length, 1, `${winners.length} of ${many} claims won`);
  const [{ store, request, answer }] = winners as [(typeof winners)[number]];
  assert.ok(answer.won);
  return { winner: attemptOf(store, request, answer.record, answer.takeover), losers };
}

const fenceOf = async (store: Store) => (await store.read(theNamespace, theKey))?.fence;

export const concurrencyCases = [
  behaviour('of fifty concurrent claims one wins, and all others get its record', [], async (scene) => {
    const { winner, losers } = await race(scene, (i) => ({ owner: `worker ${i}` }));
    for (const { answer } of losers) assert.deepEqual(still(answer.record), still(winner.record));
    assert.equal(await fenceOf(scene.elsewhere), winner.fence);
    assert.equal((await winner.succeed()).settled, true);
  }),

  behaviour(
    'of fifty concurrent intents under one key one wins, and all others see its fingerprint',
    [],
    async (scene) => {
      const { winner, losers } = await race(scene, (i) => ({ fingerprint: `intent ${i}` }));
      for (const { answer } of losers) assert.equal(answer.record?.fingerprint, winner.record.fingerprint);
    },
  ),

  behaviour('of fifty claims on a free record one wins', [], async (scene) => {
    const first = await scene.take();
    await first.settle('released');
    const { winner } = await race(scene);
    assert.equal(winner.fence, first.fence + 1);
  }),

  behaviour('of fifty concurrent takeovers one wins', ['time'], async (scene) => {
    const dead = await scene.take();
    await scene.lapse();
    const { winner } = await race(scene);
    assert.equal(winner.fence, dead.fence + 1);
    assert.equal((await scene.eventTypes()).filter((type) => type === 'takeover').length, 1);
  }),

  behaviour('of fifty verifiers and re-runs of a record in doubt one wins', ['time'], async (scene) => {
    const dead = await scene.take({ crossing: true });
    await scene.lapse();
    const { winner } = await race(scene, (i) => ({ for: i % 3 === 0 ? 'rerun' : 'verify', crossing: true }));
    assert.equal(winner.record.doubtFence, dead.fence);
  }),

  behaviour('of fifty claims on an expired record one wins', ['time'], async (scene) => {
    await (await scene.take()).succeed();
    await scene.advance(2 * 24 * 3_600_000);
    const { winner } = await race(scene);
    assert.equal(winner.record.attempts, 1);
  }),

  behaviour('concurrent claims of many keys do not disturb each other', [], async (scene) => {
    const keys = Array.from({ length: 200 }, (_, i) => `mail.send/=${i}`);
    await Promise.all(
      keys.map(async (key, i) => {
        const store = i % 2 === 0 ? scene.store : scene.elsewhere;
        const request = claimRequest({ key, crossing: i % 4 === 0 });
        const answer = await store.claim(request);
        assert.ok(answer.won);
        const attempt = attemptOf(store, request, answer.record, answer.takeover);
        await attempt.renew();
        await attempt.send();
        await attempt.succeed(JSON.stringify(key));
      }),
    );
    const records = await scene.all({ limit: 37 });
    assert.equal(records.length, keys.length);
    for (const { key, status, result } of records) {
      assert.deepEqual([status, result?.text], ['succeeded', JSON.stringify(key)]);
    }
  }),

  behaviour('of a concurrent settlement and takeover one wins, never both', ['time'], async (scene) => {
    for (let i = 0; i < 20; i += 1) {
      const key = `mail.send/=${i}`;
      const holder = await scene.take({ key, crossing: true });
      await scene.lapse();
      const claim = () => scene.elsewhere.claim(claimRequest({ key, for: 'verify' }));
      const settle = () => holder.settle('released');
      const [a, b] = await Promise.all(i % 2 === 0 ? [settle(), claim()] : [claim(), settle()]);
      const [settled, claimed] = 'won' in a ? [b, a] : [a, b];
      assert.ok('won' in claimed && 'settled' in settled);
      assert.ok(claimed.won, 'what was released is free, what was not is in doubt');
      const doubt = settled.settled ? null : holder.fence;
      assert.equal(claimed.record.doubtFence, doubt);
      assert.equal((await scene.read(key)).status, 'running');
    }
  }),

  behaviour('of fifty concurrent verdicts on the same state one counts', ['time'], async (scene) => {
    await (await scene.take({ crossing: true })).settle('unknown');
    const seen = seenIn(await scene.read());
    const verdicts = await Promise.all(
      Array.from({ length: many }, (_, i) =>
        (i % 2 === 0 ? scene.store : scene.elsewhere).resolve({
          namespace: theNamespace,
          key: theKey,
          seen,
          decidedAt: Number.MAX_SAFE_INTEGER,
          act: { type: i % 3 === 0 ? 'runAgain' : 'abandon', reason: 'raced' },
          token: newToken(),
          by: `operator ${i}`,
          note: null,
          force: false,
        }),
      ),
    );
    assert.equal(verdicts.filter(({ ok }) => ok).length, 1);
    for (const verdict of verdicts) if (!verdict.ok) assert.equal(verdict.why, 'stale');
    assert.deepEqual(await scene.eventTypes(), ['resolved']);
  }),

  behaviour('fifty concurrent claims with one token are one claim', [], async (scene) => {
    const request = claimRequest();
    const answers = await Promise.all(
      Array.from({ length: many }, (_, i) => (i % 2 === 0 ? scene.store : scene.elsewhere).claim(request)),
    );
    for (const answer of answers) {
      assert.ok(answer.won);
      assert.equal(answer.record.fence, answers[0]?.record?.fence);
    }
    assert.equal((await scene.read()).attempts, 1);
  }),

  behaviour('pruning during claims removes no live record', ['time'], async (scene) => {
    for (let i = 0; i < 20; i += 1) await (await scene.take({ key: `mail.send/=${i}` })).succeed();
    await scene.advance(2 * 24 * 3_600_000);
    const claims = Array.from({ length: 20 }, (_, i) =>
      scene.store.claim(claimRequest({ key: `mail.send/=${i}` })),
    );
    const [answers] = await Promise.all([
      Promise.all(claims),
      ...Array.from({ length: 10 }, () => scene.elsewhere.prune(3)),
    ]);
    for (const answer of answers) assert.ok(answer.won);
    assert.equal((await scene.all({ status: 'running' })).length, 20);
  }),

  behaviour('a write confirmed to one handle is visible to the other', [], async (scene) => {
    const holder = await scene.take();
    assert.equal((await scene.elsewhere.read(theNamespace, theKey))?.fence, holder.fence);
    await holder.send();
    assert.equal((await scene.elsewhere.read(theNamespace, theKey))?.dispatched, true);
    await holder.succeed('"seen"');
    const lost = await scene.elsewhere.claim(claimRequest());
    assert.equal(lost.won, false);
    assert.equal(lost.record?.result?.text, '"seen"');
  }),
];
