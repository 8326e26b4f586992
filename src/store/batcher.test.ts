import { expect, test } from 'vitest';
import { type BatcherOptions, batcher, unanswered } from './batcher.ts';

type Flush = BatcherOptions<string, string>['flush'];

/** Batches as they were taken, and a hand on when each becomes durable. */
function bench(over: Partial<BatcherOptions<string, string>> = {}) {
  const batches: (readonly string[])[] = [];
  const commits: (() => void)[] = [];
  const flush: Flush = async (take) => {
    const pieces = take();
    batches.push(pieces);
    await new Promise<void>((commit) => commits.push(commit));
    return pieces.map((piece) => `${piece}!`);
  };
  const queue = batcher<string, string>({
    flush,
    judge: (error) => ({ error, concernsAll: false }),
    ...over,
  });
  return { queue, batches, commits };
}

const settled = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));

/** Fails on these pieces, and counts how often it was asked. */
function failingOn(...bad: string[]) {
  const asked: number[] = [];
  const flush: Flush = async (take) => {
    const pieces = take();
    asked.push(pieces.length);
    const guilty = pieces.find((piece) => bad.includes(piece));
    if (guilty !== undefined) throw new Error(`cannot store ${guilty}`);
    return pieces.map((piece) => `${piece}!`);
  };
  return { flush, asked };
}

test('a lone call goes through at once, in a batch of its own', async () => {
  const { queue, batches, commits } = bench();
  const answer = queue.add('claiming', 'a');
  await settled();
  expect(batches).toEqual([['a']]);
  commits[0]?.();
  expect(await answer).toBe('a!');
});

test('the callers of one tick share a batch', async () => {
  const { queue, batches } = bench();
  for (const piece of ['a', 'b', 'c']) void queue.add('claiming', piece);
  await settled();
  expect(batches).toEqual([['a', 'b', 'c']]);
});

test('requests that arrive during a batch wait for it and go out together', async () => {
  const { queue, batches, commits } = bench();
  void queue.add('claiming', 'a');
  await settled();
  for (const piece of ['b', 'c']) void queue.add('claiming', piece);
  await settled();
  expect(batches).toEqual([['a']]);
  commits[0]?.();
  await settled();
  expect(batches).toEqual([['a'], ['b', 'c']]);
});

test('with parallel batches, what does not fit into one batch does not wait for it', async () => {
  const { queue, batches, commits } = bench({ parallel: 2, cap: 2 });
  for (const piece of ['a', 'b', 'c', 'd', 'e']) void queue.add('claiming', piece);
  await settled();
  await settled();
  expect(batches).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  commits[0]?.();
  await settled();
  expect(batches.at(-1)).toEqual(['e']);
});

test('parallel batches share the work, and few items are not split', async () => {
  const { queue, batches, commits } = bench({ parallel: 2 });
  for (let n = 0; n < 160; n += 1) void queue.add('claiming', String(n));
  await settled();
  await settled();
  expect(batches.map((batch) => batch.length)).toEqual([80, 80]);
  for (const commit of commits) commit();
  await settled();
  for (let n = 0; n < 60; n += 1) void queue.add('claiming', String(n));
  await settled();
  expect(batches.slice(2).map((batch) => batch.length)).toEqual([60]);
});

test('a caller that was answered joins the next batch with its next request', async () => {
  const { queue, batches, commits } = bench();
  const callers = ['a', 'b', 'c'].map(async (name) => {
    await queue.add('claiming', `claim ${name}`);
    await null;
    await queue.add('settling', `settle ${name}`);
  });
  await settled();
  commits[0]?.();
  await settled();
  expect(batches[1]).toEqual(['settle a', 'settle b', 'settle c']);
  commits[1]?.();
  await Promise.all(callers);
});

test('no call is answered before the commit', async () => {
  const { queue, commits } = bench();
  const told: string[] = [];
  const answers = ['a', 'b'].map(async (piece) => told.push(await queue.add('claiming', piece)));
  await settled();
  expect(told).toEqual([]);
  commits[0]?.();
  await Promise.all(answers);
  expect(told).toEqual(['a!', 'b!']);
});

test('renewals go before claims, and claims before settles', async () => {
  const { queue, batches } = bench();
  void queue.add('settling', 'settle');
  void queue.add('claiming', 'claim');
  void queue.add('holding', 'renew');
  await settled();
  expect(batches).toEqual([['renew', 'claim', 'settle']]);
});

test('a batch is capped, and the rest goes out next', async () => {
  const { queue, batches, commits } = bench({ cap: 3 });
  for (let i = 0; i < 7; i += 1) void queue.add('claiming', String(i));
  for (const _ of [0, 1, 2]) {
    await settled();
    commits.at(-1)?.();
  }
  await settled();
  expect(batches).toEqual([['0', '1', '2'], ['3', '4', '5'], ['6']]);
});

test('a renewal overtakes a queue of claims that is longer than a batch', async () => {
  const { queue, batches } = bench({ cap: 4 });
  for (let i = 0; i < 10; i += 1) void queue.add('claiming', `claim ${i}`);
  void queue.add('holding', 'renew');
  await settled();
  expect(batches[0]).toContain('renew');
});

test('a flood of claims leaves a quarter of each batch to settlements', async () => {
  const { queue, batches } = bench({ cap: 8 });
  for (let i = 0; i < 20; i += 1) void queue.add('claiming', `claim ${i}`);
  for (let i = 0; i < 20; i += 1) void queue.add('settling', `settle ${i}`);
  await settled();
  expect(batches[0]?.filter((piece) => piece.startsWith('settle'))).toEqual(['settle 0', 'settle 1']);
});

test('a batch that fails is bisected until the failing call is alone', async () => {
  const { flush, asked } = failingOn('p5');
  const { queue } = bench({ flush });
  const pieces = Array.from({ length: 8 }, (_, i) => `p${i}`);
  const answers = await Promise.allSettled(pieces.map((piece) => queue.add('claiming', piece)));
  for (const [i, answer] of answers.entries()) {
    if (i === 5) expect(answer).toMatchObject({ reason: new Error('cannot store p5') });
    else expect(answer).toEqual({ status: 'fulfilled', value: `p${i}!` });
  }
  expect(asked).toEqual([8, 4, 4, 2, 1, 1, 2]);
});

test('several failing calls are each isolated', async () => {
  const { flush } = failingOn('p0', 'p6');
  const { queue } = bench({ flush });
  const pieces = Array.from({ length: 7 }, (_, i) => `p${i}`);
  const answers = await Promise.allSettled(pieces.map((piece) => queue.add('claiming', piece)));
  expect(answers.map(({ status }) => status === 'fulfilled')).toEqual([
    false,
    true,
    true,
    true,
    true,
    true,
    false,
  ]);
});

test('a failure that concerns all fails all, without trying each', async () => {
  let asked = 0;
  const { queue } = bench({
    flush: async (take) => {
      asked += take().length;
      throw new Error('disk gone');
    },
    judge: () => ({ error: new Error('unavailable'), concernsAll: true }),
  });
  const answers = await Promise.allSettled(['a', 'b', 'c'].map((piece) => queue.add('claiming', piece)));
  expect(asked).toBe(3);
  for (const answer of answers) expect(answer).toMatchObject({ reason: new Error('unavailable') });
});

test('if the store never gets ready, every waiting request fails', async () => {
  const { queue } = bench({
    flush: async () => {
      await settled();
      throw new Error('locked');
    },
    judge: (error) => ({ error, concernsAll: true }),
  });
  const early = queue.add('claiming', 'early');
  const told = Promise.allSettled([early, settled().then(() => queue.add('settling', 'late'))]);
  expect((await told).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});

test('what came while the store was getting ready goes out with the first', async () => {
  const batches: (readonly string[])[] = [];
  const { queue } = bench({
    flush: async (take) => {
      await settled();
      const pieces = take();
      batches.push(pieces);
      return pieces;
    },
  });
  const early = queue.add('claiming', 'early');
  await new Promise((resolve) => setImmediate(resolve));
  await Promise.all([early, queue.add('holding', 'late')]);
  expect(batches).toEqual([['late', 'early']]);
});

test('the queue continues after a failure', async () => {
  const { flush } = failingOn('bad');
  const { queue } = bench({ flush });
  await expect(queue.add('claiming', 'bad')).rejects.toThrow('cannot store bad');
  expect(await queue.add('claiming', 'good')).toBe('good!');
});

test('drained waits for queued and running requests, but not for ever', async () => {
  const { queue, commits } = bench();
  await queue.drained();
  const answer = queue.add('claiming', 'a');
  let isDrained = false;
  const drained = queue.drained().then(() => {
    isDrained = true;
  });
  await settled();
  expect(isDrained).toBe(false);
  commits[0]?.();
  await Promise.all([answer, drained]);
});

test('after a failure, an item that is sent again does not join the one that failed its batch', async () => {
  const seen = new Set<string>();
  let flushes = 0;
  const queue = batcher<string, string>({
    judge: (error) => ({ error, concernsAll: false }),
    async flush(take) {
      const pieces = take();
      flushes += 1;
      if (flushes > 50) return pieces.map(() => 'never answered');
      // As in a store: each is looked at first, then written; a failure forgets what was seen.
      if (!pieces.every((piece) => seen.has(piece))) {
        for (const piece of pieces) seen.add(piece);
        return pieces.map(() => unanswered);
      }
      if (!pieces.includes('bad')) return pieces.map((piece) => `${piece}!`);
      for (const piece of pieces) seen.delete(piece);
      throw new Error('cannot store bad');
    },
  });
  const answers = await Promise.allSettled(
    ['a', 'b', 'bad', 'c'].map((piece) => queue.add('claiming', piece)),
  );
  expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.status))).toEqual([
    'a!',
    'b!',
    'rejected',
    'c!',
  ]);
});
