// One lane per attempt, of records that were really claimed, lost, decided and settled.

import { expect, test } from 'vitest';
import type { HistoryEvent, RecordInfo } from '../../dashboard/answers.ts';
import { lanesOf } from '../../dashboard/lanes.ts';
import { toRecordInfo } from '../../src/semel/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { ClaimRequest, ResolveRequest } from '../../src/store/store.ts';
import {
  lease,
  newToken,
  quiet,
  take,
  theKey,
  theNamespace,
} from '../../src/testing/store-contract/attempt.ts';

const startedAt = Date.parse('2026-06-19T08:00:00Z');

function createScene() {
  let ms = 0;
  const store = memoryStore({
    time: () => ({ wall: startedAt + ms, mono: ms, boot: 'boot', steady: true }),
  });
  let owners = 0;
  return {
    wait(more: number) {
      ms += more;
    },
    take(over: Partial<ClaimRequest> = {}) {
      owners += 1;
      return take(store, { owner: `worker ${owners}`, ...over });
    },
    async decide(act: ResolveRequest['act']) {
      const record = (await store.read(theNamespace, theKey))!;
      const seen = { fence: record.fence, dispatchedAt: record.lastDispatchedAt };
      const decidedAt = startedAt + ms;
      const answer = await store.resolve({
        ...{ namespace: theNamespace, key: theKey, token: newToken(), seen, act, decidedAt },
        ...{ by: 'ada', note: undefined, force: false },
      } as unknown as ResolveRequest);
      expect(answer.ok).toBe(true);
    },
    /** As the page gets it: one line per moment, `at lane: text`. */
    async show() {
      const record = (await store.read(theNamespace, theKey))!;
      const history = await store.history(theNamespace, theKey);
      const { lanes, moments } = lanesOf(
        JSON.parse(JSON.stringify(toRecordInfo(record))) as RecordInfo,
        JSON.parse(JSON.stringify(history)) as HistoryEvent[],
      );
      return {
        lanes: lanes.map(({ attempt, fence, owner }) => [attempt, fence - record.generation, owner]),
        moments: moments.map(
          ({ at, lane, what }) =>
            `${at === undefined ? '?' : (at - startedAt) / 1_000} ${lane === undefined ? '-' : (lanes[lane]?.attempt ?? '?')}: ${what}`,
        ),
      };
    },
  };
}

test('a takeover: the first attempt lost its lease, and each has its lane', async () => {
  const { take, wait, show } = createScene();
  await take({ crossing: true, effect: 'write-idempotent', keyed: true });
  wait(lease);
  const second = await take({ for: 'rerun', crossing: true, effect: 'write-idempotent', keyed: true });
  wait(1_000);
  await second.succeed();
  expect(await show()).toEqual({
    lanes: [
      [1, 0, 'worker 1'],
      [2, 1, 'worker 2'],
    ],
    moments: [
      '0 1: claim: attempt 1 starts',
      '0 1: dispatched: from here on it may land',
      '60 1: lost its lease after it had dispatched: it may have landed',
      '60 2: claim: attempt 2 takes over, to run it again under the same key',
      '60 2: dispatched again',
      '61 2: succeeded: it landed',
    ],
  });
});

test('an attempt that reported its end did not lose its lease', async () => {
  const { take, wait, show } = createScene();
  const first = await take({ crossing: true });
  wait(1_000);
  await first.settle('unknown');
  wait(quiet);
  const verifier = await take({ for: 'verify' });
  wait(1_000);
  await verifier.find();
  expect((await show()).moments).toEqual([
    '0 1: claim: attempt 1 starts',
    '0 1: dispatched: from here on it may land',
    '? 1: ended, and nobody knows whether it landed',
    '661 2: claim: attempt 2 takes over, to ask the target',
    '662 2: succeeded: it landed',
  ]);
});

test('released and retried: three attempts without an event are three lanes', async () => {
  const { take, wait, show } = createScene();
  for (let n = 0; n < 2; n += 1) {
    await (await take({ crossing: true })).settle('released');
    wait(1_000);
  }
  await (await take({ crossing: true })).succeed();
  expect(await show()).toEqual({
    lanes: [
      [1, 0, undefined],
      [2, 1, undefined],
      [3, 2, 'worker 3'],
    ],
    moments: [
      '0 1: claim: attempt 1 starts',
      '? 2: claim: attempt 2 starts, because the one before did not land',
      '? 3: claim: attempt 3 starts, because the one before did not land',
      '2 3: dispatched: from here on it may land',
      '2 3: succeeded: it landed',
    ],
  });
});

test('a verdict has no lane: the first attempt keeps its own', async () => {
  const { take, wait, decide, show } = createScene();
  await take({ crossing: true });
  wait(quiet);
  await decide({ type: 'landed', result: { text: '"seen"', omitted: null, remoteRef: null } });
  expect(await show()).toEqual({
    lanes: [[1, 0, 'worker 1']],
    moments: [
      '0 1: claim: attempt 1 starts',
      '0 1: dispatched: from here on it may land',
      '660 -: verdict of ada: landed',
      '660 -: succeeded: it landed',
    ],
  });
});

test.each(['notLanded', 'runAgain'] as const)('an attempt after "%s" has a lane of its own', async (type) => {
  const { take, wait, decide, show } = createScene();
  await take({ crossing: true });
  wait(quiet);
  await decide({ type });
  wait(1_000);
  const second = await take({ crossing: true });
  wait(1_000);
  await second.succeed();
  const { lanes, moments } = await show();
  expect(lanes).toEqual([
    [1, 0, undefined],
    [2, 2, 'worker 2'],
  ]);
  expect(moments).toEqual([
    '0 1: claim: attempt 1 starts',
    '0 1: dispatched: from here on it may land',
    `660 -: verdict of ada: ${type === 'notLanded' ? 'not landed' : 'run again'}`,
    '? 2: claim: attempt 2 starts, as decided',
    '661 2: dispatched again',
    '662 2: succeeded: it landed',
  ]);
});

test('late news settles the record in the lane of the attempt that landed', async () => {
  const { take, wait, decide, show } = createScene();
  const first = await take({ crossing: true });
  wait(quiet);
  await decide({ type: 'runAgain' });
  wait(1_000);
  await first.succeed();
  expect(await show()).toEqual({
    lanes: [[1, 0, 'worker 1']],
    moments: [
      '0 1: claim: attempt 1 starts',
      '0 1: dispatched: from here on it may land',
      '660 -: verdict of ada: run again',
      '661 1: late news: it had succeeded',
      '661 1: succeeded: it landed',
    ],
  });
});

test('a second effect is an alarm in the lane of the attempt that made it', async () => {
  const { take, wait, decide, show } = createScene();
  const first = await take({ crossing: true });
  wait(quiet);
  await decide({ type: 'runAgain' });
  const second = await take({ crossing: true });
  wait(1_000);
  await second.succeed();
  wait(1_000);
  await first.succeed();
  expect((await show()).moments.at(-1)).toBe('662 1: DUPLICATE: it landed a second time');
});

test('of many attempts, the latest have lanes', async () => {
  const { take, show } = createScene();
  for (let n = 0; n < 80; n += 1) await (await take()).settle('released');
  const { lanes, moments } = await show();
  expect(lanes.map(([attempt]) => attempt)).toEqual([69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80]);
  expect(moments.slice(0, 3)).toEqual([
    '0 -: claim: attempt 1 starts',
    '? -: 29 attempts before this are not shown',
    '? -: claim: attempt 31 starts, because the one before did not land',
  ]);
  expect(moments).toHaveLength(53);
});
