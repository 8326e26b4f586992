// What an attempt that no longer holds the key has to tell. A success is never wasted, and a second one is
// never silent.

import assert from 'node:assert/strict';
import { day, hour, minute, quiet, refusedBecause, resultOf } from './attempt.ts';
import { behaviour, refusedAs, type Scene, seenIn, unchanged } from './scene.ts';

const landed = { type: 'landed', result: resultOf('"found"') } as const;

/** One attempt lapsed after the line, another holds the key. */
async function fencedBy(scene: Scene, over = {}) {
  const zombie = await scene.take({ crossing: true, ...over });
  await scene.lapse();
  return { zombie, holder: await scene.take({ for: 'rerun', ...over }) };
}

export const newsCases = [
  behaviour('a late success settles a record that ended unknown', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene);
    await holder.settle('unknown');
    const { settled, fenced, noted, record } = await zombie.succeed('"late"');
    assert.deepEqual([settled, fenced, noted], [true, true, 'lateNews']);
    assert.deepEqual([record?.status, record?.doubtFence], ['succeeded', null]);
    assert.equal((await scene.lose()).result?.text, '"late"');
  }),

  behaviour('a late success without a value says so', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene);
    await holder.settle('unknown');
    const { record } = await zombie.settle('succeeded', { result: null });
    assert.equal(record?.status, 'succeeded');
    assert.ok(record.result?.omitted);
  }),

  behaviour('a recorded late success is never pruned', ['time'], async (scene) => {
    const zombie = await scene.take();
    await scene.lapse();
    await scene.take();
    await zombie.succeed('"late"');
    await scene.advance(10 * day);
    assert.equal(await scene.pruneAll(), 0);
    assert.equal((await scene.lose()).result?.text, '"late"');
  }),

  behaviour('a verifier that finds what was already reported is not news', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    const verifier = await scene.take({ for: 'verify' });
    await scene.lapse();
    await zombie.succeed('"late"');
    await unchanged(scene, async () => {
      const { settled, fenced, noted } = await verifier.find();
      assert.deepEqual([settled, fenced, noted], [false, true, 'fenced']);
    });
    assert.equal((await zombie.succeed()).noted, undefined);
  }),

  behaviour(
    'verifier findings never count as a second effect, however many or late',
    ['time'],
    async (scene) => {
      for (const order of ['reported first', 'found first', 'found while another runs'] as const) {
        const key = `mail.send/=${order}`;
        const zombie = await scene.take({ key, crossing: true });
        await scene.lapse();
        const first = await scene.take({ key, for: 'verify' });
        await scene.lapse();
        const second = await scene.take({ key, for: 'verify' });
        if (order === 'reported first') await zombie.succeed();
        if (order === 'found first') await second.settle('unknown');
        await first.find();
        if (order !== 'reported first') await zombie.succeed();
        await second.find();
        assert.equal((await scene.eventTypes(key)).includes('duplicate'), false, order);
        assert.equal((await scene.lose({ key })).status, 'succeeded');
      }
    },
  ),

  behaviour('findings of two verifiers are one effect, explained by its attempt', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    const first = await scene.take({ for: 'verify' });
    await scene.lapse();
    const second = await scene.take({ for: 'verify' });
    await second.find();
    assert.equal((await first.find()).noted, 'fenced');
    assert.equal((await zombie.succeed()).noted, 'lateNews');
  }),

  behaviour(
    'a verifier’s finding belongs to the first attempt that reports success; the next is a duplicate',
    ['time'],
    async (scene) => {
      const zombie = await scene.take({ crossing: true });
      await scene.lapse();
      const verifier = await scene.take({ for: 'verify' });
      await scene.lapse();
      const rerun = await scene.take({ crossing: true, for: 'rerun' });
      await verifier.find();
      assert.equal((await rerun.succeed()).noted, undefined);
      assert.equal((await zombie.succeed()).noted, 'duplicate');
    },
  ),

  behaviour('a second attempt that landed is a duplicate', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    const rerun = await scene.take({ crossing: true, for: 'rerun' });
    await scene.lapse();
    await zombie.succeed('"first"');
    assert.equal((await rerun.succeed('"second"')).noted, 'duplicate');
  }),

  behaviour('a late success settles a record that was declared not landed', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.advance(quiet);
    await scene.resolved({ type: 'notLanded' });
    assert.equal((await zombie.succeed('"late"')).record?.status, 'succeeded');
    assert.equal((await scene.lose()).result?.text, '"late"');
  }),

  behaviour('a late success settles a record that was to run again', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    await scene.resolved({ type: 'runAgain' });
    assert.equal((await zombie.succeed()).settled, true);
    await scene.lose();
  }),

  behaviour('a late success stops the running attempt from dispatching', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene);
    const { settled, fenced, noted, record } = await zombie.succeed('"late"');
    assert.deepEqual([settled, fenced, noted, record?.status], [false, true, 'lateNews', 'running']);
    refusedBecause(await holder.dispatch(), 'landed');
    await scene.advance(quiet);
    await holder.renew();
    refusedBecause(await holder.clear(), 'landed');
  }),

  behaviour(
    'a late success is used instead of whatever else the running attempt ends with',
    ['time'],
    async (scene) => {
      for (const outcome of ['failed', 'released', 'unknown'] as const) {
        const key = `mail.send/=${outcome}`;
        const { zombie, holder } = await fencedBy(scene, { key });
        await zombie.succeed('"late"');
        const { settled, record } = await holder.settle(outcome);
        assert.equal(settled, true);
        assert.equal(record?.status, 'succeeded');
        assert.equal(record.result?.text, '"late"');
        assert.equal(record.doubtFence, null);
      }
    },
  ),

  behaviour('a late success is found after the running attempt has lapsed', ['time'], async (scene) => {
    const { zombie } = await fencedBy(scene);
    await zombie.succeed('"late"');
    await scene.lapse();
    for (const reason of ['rerun', 'execute', 'verify'] as const) {
      const record = await scene.lose({ for: reason, crossing: true });
      assert.equal(record.status, 'succeeded');
      assert.equal(record.result?.text, '"late"');
    }
  }),

  behaviour('a late success settles a record whose running attempt has lapsed', ['time'], async (scene) => {
    const { zombie } = await fencedBy(scene);
    await scene.lapse();
    const { settled, record } = await zombie.succeed('"late"');
    assert.deepEqual([settled, record?.status], [true, 'succeeded']);
    assert.equal((await scene.lose({ for: 'rerun' })).result?.text, '"late"');
  }),

  behaviour('no verdict overrides a recorded late success', ['time'], async (scene) => {
    for (const type of ['notLanded', 'runAgain'] as const) {
      const key = `mail.send/=${type}`;
      const { zombie } = await fencedBy(scene, { key });
      await zombie.succeed('"late"');
      await scene.advance(quiet);
      refusedAs(await scene.resolve({ type }, { key }), 'settled');
      assert.equal((await scene.lose({ key, crossing: true })).result?.text, '"late"');
    }
  }),

  behaviour('nor does a forced verdict on the running attempt', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene);
    await zombie.succeed('"late"');
    refusedAs(await scene.resolve({ type: 'runAgain' }, { force: true }), 'settled');
    assert.equal((await scene.lose()).result?.text, '"late"');
    refusedBecause(await holder.dispatch(), 'fenced');
  }),

  behaviour('two successes at a target without keys are a duplicate', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene);
    await holder.send();
    await holder.succeed('"second"');
    await unchanged(scene, async () => {
      const { settled, fenced, noted } = await zombie.succeed('"first"');
      assert.deepEqual([settled, fenced, noted], [false, true, 'duplicate']);
    });
    assert.deepEqual(await scene.eventTypes(), ['takeover', 'duplicate']);
  }),

  behaviour('also if the late one was known before the other ended', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene);
    await holder.send();
    await zombie.succeed('"first"');
    const { settled, noted } = await holder.succeed('"second"');
    assert.deepEqual([settled, noted], [true, 'duplicate']);
  }),

  behaviour('two successes under one provider’s key are one effect', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene, { keyed: true, rerunWithinMs: hour });
    await holder.send();
    await holder.succeed();
    const { settled, noted } = await zombie.succeed();
    assert.deepEqual([settled, noted], [false, 'fenced']);
    assert.equal((await scene.eventTypes()).includes('duplicate'), false);
  }),

  behaviour('also if the late one was known first, under one provider’s key', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene, { keyed: true, rerunWithinMs: hour });
    await holder.send();
    await zombie.succeed();
    const { settled, noted } = await holder.succeed();
    assert.deepEqual([settled, noted], [true, undefined]);
  }),

  behaviour('a success under an older provider’s key is a duplicate', ['time'], async (scene) => {
    for (const order of ['late', 'early'] as const) {
      const over = { key: `mail.send/=${order}`, keyed: true, rerunWithinMs: hour };
      const zombie = await scene.take({ crossing: true, ...over });
      await scene.advance(quiet);
      const holder = await scene.take({ for: 'verify', ...over });
      await holder.cleared({ crossing: true, freshKey: true });
      const [first, second] = order === 'late' ? [holder, zombie] : [zombie, holder];
      await first.succeed();
      assert.equal((await second.succeed()).noted, 'duplicate');
    }
  }),

  behaviour('two late successes at a target without keys are a duplicate', ['time'], async (scene) => {
    const first = await scene.take({ crossing: true });
    await scene.lapse();
    const second = await scene.take({ crossing: true, for: 'rerun' });
    await scene.lapse();
    const holder = await scene.take({ for: 'verify' });
    await first.succeed('"first"');
    assert.equal((await second.succeed('"second"')).noted, 'duplicate');
    const { record } = await holder.settle('unknown');
    assert.equal(record?.result?.text, '"first"');
  }),

  behaviour(
    'a success that a verifier found and its own attempt reports later are one effect',
    ['time'],
    async (scene) => {
      for (const order of ['late', 'early'] as const) {
        const key = `mail.send/=${order}`;
        const zombie = await scene.take({ key, crossing: true });
        await scene.lapse();
        const verifier = await scene.take({ key, for: 'verify' });
        if (order === 'late') await verifier.find();
        await zombie.succeed();
        if (order === 'early') await verifier.find();
        assert.equal((await scene.eventTypes(key)).includes('duplicate'), false);
        assert.equal((await scene.lose({ key })).status, 'succeeded');
      }
    },
  ),

  behaviour(
    'a success that a person saw and its own attempt reports later are one effect',
    ['time'],
    async (scene) => {
      const zombie = await scene.take({ crossing: true });
      await scene.lapse();
      await scene.resolved(landed);
      await unchanged(scene, () => zombie.succeed('"reported"'));
      assert.equal((await scene.eventTypes()).includes('duplicate'), false);
      assert.equal((await scene.lose()).result?.text, '"found"', 'what is settled stays as it is');
    },
  ),

  behaviour(
    'a second attempt that reports what was found already is a duplicate',
    ['time'],
    async (scene) => {
      const first = await scene.take({ crossing: true });
      await scene.lapse();
      const second = await scene.take({ crossing: true, for: 'rerun' });
      await scene.lapse();
      await (await scene.take({ for: 'verify' })).find();
      await second.succeed();
      assert.equal((await first.succeed()).noted, 'duplicate');
    },
  ),

  behaviour('a late success after a refusal is a contradiction', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.advance(quiet);
    const holder = await scene.take({ for: 'verify' });
    await holder.cleared({ crossing: true });
    await holder.settle('failed');
    await unchanged(scene, async () => {
      const { settled, fenced, noted } = await zombie.succeed();
      assert.deepEqual([settled, fenced, noted], [false, true, 'contradiction']);
    });
  }),

  behaviour('a late success of an abandoned record is a contradiction', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    await scene.resolved({ type: 'abandon', reason: 'too late' });
    await unchanged(scene, async () => assert.equal((await zombie.succeed()).noted, 'contradiction'));
    assert.equal((await scene.eventTypes()).at(-1), 'contradiction');
  }),

  behaviour('a late refusal is kept as evidence and changes nothing', ['time'], async (scene) => {
    const { zombie, holder } = await fencedBy(scene);
    await unchanged(scene, () => zombie.settle('failed'));
    await holder.settle('unknown');
    await unchanged(scene, () => zombie.settle('released'));
    const fenced = (await scene.events()).filter(({ type }) => type === 'fenced');
    assert.deepEqual(
      fenced.map(({ detail }) => detail.outcome),
      ['failed', 'released'],
    );
    assert.equal(fenced[0]?.fence, zombie.fence);
  }),

  behaviour(
    'a late success under a fresh key still stops what has not been dispatched',
    ['time'],
    async (scene) => {
      const over = { keyed: true, rerunWithinMs: minute };
      const zombie = await scene.take({ crossing: true, ...over });
      await scene.advance(quiet);
      const holder = await scene.take({ for: 'verify', ...over });
      await holder.cleared({ freshKey: true });
      await zombie.succeed('"late"');
      refusedBecause(await holder.dispatch(), 'landed');
      assert.equal((await holder.settle('released')).record?.result?.text, '"late"');
    },
  ),

  behaviour('a late success after a reopened refusal still counts', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.advance(quiet);
    const holder = await scene.take({ for: 'verify' });
    await holder.cleared({ crossing: true });
    await holder.settle('failed');
    await scene.resolved({ type: 'reopen' });
    assert.equal((await zombie.succeed()).record?.status, 'succeeded');
    await scene.lose();
  }),

  behaviour('a late success of an older generation leaves the newer one alone', ['time'], async (scene) => {
    const zombie = await scene.take({ fingerprint: 'a', crossing: true });
    await scene.advance(quiet);
    await scene.resolved({ type: 'notLanded' });
    const next = await scene.take({ fingerprint: 'b' });
    await unchanged(scene, async () => {
      const { settled, fenced, noted } = await zombie.succeed();
      assert.deepEqual([settled, fenced, noted], [false, true, 'lateNews']);
    });
    await next.send();
    const event = (await scene.events()).at(-1);
    assert.deepEqual([event?.type, event?.generation], ['lateNews', zombie.generation]);
  }),

  behaviour('a late success without a record is kept as an event under its key', ['time'], async (scene) => {
    const zombie = await scene.take();
    await scene.advance(day);
    await scene.pruneAll();
    const { settled, fenced, record, noted } = await zombie.succeed();
    assert.deepEqual([settled, fenced, record, noted], [false, true, undefined, 'lateNews']);
    assert.equal(await scene.store.read(zombie.namespace, zombie.key), undefined);
    assert.equal((await scene.eventTypes()).at(-1), 'lateNews');
    await zombie.settle('failed');
    assert.equal((await scene.eventTypes()).filter((type) => type === 'lateNews').length, 1);
  }),

  behaviour('a verdict made before a late success arrived does not undo it', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    await (await scene.take({ for: 'verify' })).settle('unknown');
    await scene.advance(quiet);
    const seen = seenIn(await scene.read());
    await zombie.succeed();
    refusedAs(await scene.resolve({ type: 'notLanded' }, { seen }), 'settled');
    assert.equal((await scene.read()).status, 'succeeded');
  }),
];
