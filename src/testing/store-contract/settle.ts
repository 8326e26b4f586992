// How an attempt's ending becomes the record's.

import assert from 'node:assert/strict';
import type { Outcome } from '../../core/contract/words.ts';
import { attemptOf, claimRequest, failureWindow, refused, resultOf, window } from './attempt.ts';
import { behaviour, unchanged } from './scene.ts';

const outcomes: readonly Outcome[] = ['succeeded', 'failed', 'released', 'unknown'];

export const settleCases = [
  behaviour('a success is kept with its value and the provider’s reference', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    const { settled, fenced, noted, record } = await holder.settle('succeeded', {
      result: resultOf('{"id":1}', 'msg_1'),
    });
    assert.deepEqual([settled, fenced, noted], [true, false, undefined]);
    assert.equal(record?.status, 'succeeded');
    assert.equal(record.settledAt, record.readAt);
    assert.equal(record.expiresAt, record.readAt + window);
    assert.equal(record.leaseLeftMs, 0);
    assert.equal(record.error, null);
    const seen = await scene.elsewhere.read(holder.namespace, holder.key);
    assert.deepEqual(seen?.result, resultOf('{"id":1}', 'msg_1'));
  }),

  behaviour('a settlement counts through a handle that never saw the record', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    const request = claimRequest({ token: holder.token, crossing: true });
    const { settled, fenced, record } = await attemptOf(
      scene.elsewhere,
      request,
      holder.record,
      false,
    ).succeed();
    assert.deepEqual([settled, fenced, record?.status], [true, false, 'succeeded']);
    assert.deepEqual(await scene.eventTypes(), []);
  }),

  behaviour('a success without a value says so', [], async (scene) => {
    const holder = await scene.take();
    const { record } = await holder.settle('succeeded', { result: null });
    assert.equal(record?.result?.text, null);
    assert.ok(record.result.omitted);
  }),

  behaviour('a result that was omitted keeps the reason and the reference', [], async (scene) => {
    const omitted = { text: null, omitted: 'larger than 1 MB', remoteRef: 'msg_1' };
    await (await scene.take()).settle('succeeded', { result: omitted });
    assert.deepEqual((await scene.lose()).result, omitted);
  }),

  behaviour('a failure answers for its failure window', [], async (scene) => {
    const { record } = await (await scene.take({ crossing: true })).settle('failed');
    assert.equal(record?.status, 'failed');
    assert.deepEqual(record.error, refused);
    assert.equal(record.expiresAt, record.readAt + failureWindow);
    assert.equal(record.inDoubt, false);
  }),

  behaviour('a release keeps its error as evidence', [], async (scene) => {
    const { record } = await (await scene.take({ crossing: true })).settle('released');
    assert.equal(record?.status, 'released');
    assert.deepEqual(record.error, refused);
    assert.equal(record.doubtFence, null);
    assert.equal(record.inDoubt, false);
  }),

  behaviour('an unknown outcome is in doubt and never expires', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    const { record } = await holder.settle('unknown');
    assert.equal(record?.status, 'unknown');
    assert.equal(record.inDoubt, true);
    assert.equal(record.doubtFence, holder.fence);
    assert.equal(record.expiresAt, null);
    assert.deepEqual(record.error, refused);
  }),

  behaviour('the holder can settle after its lease, unless somebody took over', ['time'], async (scene) => {
    for (const outcome of outcomes) {
      const key = `mail.send/=${outcome}`;
      const holder = await scene.take({ key, crossing: true });
      await scene.advance(10 * 60_000);
      const { settled, fenced, record } = await holder.settle(outcome);
      assert.deepEqual([settled, fenced, record?.status], [true, false, outcome]);
    }
  }),

  behaviour('only the holder’s token settles', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await unchanged(scene, async () => {
      for (const outcome of ['failed', 'released', 'unknown'] as const) {
        const { settled } = await holder.settle(outcome, { token: 'somebody else', fence: holder.fence - 1 });
        assert.equal(settled, false);
      }
    });
  }),

  behaviour('a settled record never becomes something else', [], async (scene) => {
    const refusals: [Outcome, Outcome[]][] = [
      ['succeeded', ['failed', 'released', 'unknown']],
      ['failed', ['released', 'unknown']],
      ['released', ['failed', 'unknown']],
    ];
    for (const [first, later] of refusals) {
      const key = `mail.send/=${first}`;
      const holder = await scene.take({ key, crossing: true });
      await holder.settle(first);
      for (const outcome of later) {
        await unchanged(
          scene,
          async () => {
            const { settled, fenced, record } = await holder.settle(outcome);
            assert.deepEqual([settled, fenced, record?.status], [false, false, first]);
          },
          key,
        );
      }
    }
  }),

  behaviour('a value is never replaced by another', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.succeed('"first"');
    const { settled, record } = await holder.succeed('"second"');
    assert.equal(settled, true);
    assert.equal(record?.result?.text, '"first"');
  }),

  behaviour('an attempt that said "failed" and then "succeeded" is a contradiction', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.settle('failed');
    await unchanged(scene, async () => {
      const { settled, fenced, noted } = await holder.succeed();
      assert.deepEqual([settled, fenced, noted], [false, false, 'contradiction']);
    });
    assert.deepEqual(await scene.eventTypes(), ['contradiction']);
  }),

  behaviour('an attempt that said "unknown" may correct itself', [], async (scene) => {
    for (const better of ['succeeded', 'failed', 'released'] as const) {
      const key = `mail.send/=${better}`;
      const holder = await scene.take({ key, crossing: true });
      await holder.settle('unknown');
      const { settled, record } = await holder.settle(better);
      assert.deepEqual([settled, record?.status, record?.doubtFence], [true, better, null]);
      assert.notEqual(record?.expiresAt, null);
    }
  }),

  behaviour('an attempt that said "released" may still report its success', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.settle('released');
    const { settled, record } = await holder.succeed('"after all"');
    assert.deepEqual([settled, record?.status], [true, 'succeeded']);
    assert.equal((await scene.lose()).result?.text, '"after all"');
  }),
];
