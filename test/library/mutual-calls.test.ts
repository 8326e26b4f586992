// Tools that call each other: where one process sees it, the call that would close the circle is refused at once; across
// processes the wait is bounded, and says what may be the matter.

import type { Semel, SemelError, ToolFunction } from 'semel';
import { expect, test } from 'vitest';
import { gate, rest, rig } from './support.ts';

const base = { effect: 'write-non-idempotent', per: 'ever' } as const;
type Tool = ToolFunction<object, string>;

/** Two tools whose runs call each other, once both have begun. */
function pair(first: Semel, second: Semel, more: object = {}) {
  const both = [gate(), gate()];
  const begin = (nth: number) => {
    both[nth]!.resolve();
    return Promise.all(both.map(({ promise }) => promise));
  };
  const define = (semel: Semel, name: string, nth: number, other: () => Tool): Tool =>
    semel.tool({
      ...base,
      ...more,
      name,
      run: async (_: object) => {
        await begin(nth);
        return `${name} > ${await other()({})}`;
      },
    });
  const plain = (semel: Semel, name: string): Tool => semel.tool({ ...base, ...more, name, run: () => name });
  if (first === second) {
    const a: Tool = define(first, 'a', 0, () => b);
    const b: Tool = define(first, 'b', 1, () => a);
    return { a, b };
  }
  const otherB = plain(first, 'b');
  const otherA = plain(second, 'a');
  return { a: define(first, 'a', 0, () => otherB), b: define(second, 'b', 1, () => otherA) };
}

const codesOf = (error: SemelError): unknown[] => {
  const codes: unknown[] = [];
  for (let each: unknown = error; each !== undefined; each = (each as Error).cause)
    codes.push((each as SemelError).code);
  return codes;
};

test.each(['write-non-idempotent', 'write-idempotent'])(
  'in one process, two runs that call each other end at once: %s',
  async (effect) => {
    const { semel, clock } = rig();
    const { a, b } = pair(semel, semel, { effect });
    const startedAt = clock.mono();
    const [one, other] = await clock.until(Promise.all([a.try({}), b.try({})]));
    expect(clock.mono() - startedAt).toBeLessThan(1_000);
    const codes = [one, other].flatMap((result) => (result.ok ? [] : codesOf(result.error)));
    expect(codes).toContain('REENTRANT');
    const told = [one, other].map((result) =>
      result.ok ? '' : String((result.error.cause as Error).message),
    );
    expect(told.join()).toMatch(
      /(a was called from inside the run of b|b was called from inside the run of a), and would wait/,
    );
  },
);

test('so do three', async () => {
  const { semel, clock } = rig();
  const names = ['a', 'b', 'c'];
  const begun = names.map(() => gate());
  const tools: Tool[] = names.map((name, nth) =>
    semel.tool({
      ...base,
      name,
      run: async (_: object) => {
        begun[nth]!.resolve();
        await Promise.all(begun.map(({ promise }) => promise));
        return tools[(nth + 1) % names.length]!({});
      },
    }),
  );
  const results = await clock.until(Promise.all(tools.map((tool) => tool.try({}))));
  expect(results.flatMap((result) => (result.ok ? [] : codesOf(result.error)))).toContain('REENTRANT');
});

test('calls that share one another without a circle are not refused', async () => {
  const { semel } = rig();
  const { promise, resolve } = gate<string>();
  const shared = semel.tool({ ...base, name: 'shared', run: () => promise });
  const outer = (name: string) => semel.tool({ ...base, name, run: () => shared({}) });
  const calls = ['one', 'two', 'three'].map((name) => outer(name).try({}));
  await rest();
  resolve('done');
  for (const call of calls) expect(await call).toMatchObject({ ok: true, value: 'done' });
  expect(await outer('four').try({})).toMatchObject({ ok: true, value: 'done' });
});

test('across processes the wait ends, also without a timeout, and says why', async () => {
  const made = rig();
  const { a, b } = pair(made.semel, made.another(), { timeout: 'none' });
  const calls = Promise.all([a.try({}), b.try({})]);
  const results = await made.clock.until(calls);
  const errors = results.flatMap((result) => (result.ok ? [] : [result.error]));
  expect(errors.flatMap(codesOf)).toContain('IN_FLIGHT');
  expect(String(errors[0]!.cause)).toMatch(
    /is called from inside the run of [ab]: if the other run of [ab] calls/,
  );
  expect(made.warnings.some((text) => text.includes('Do not let two tools call each other'))).toBe(true);
});

test('one of two calls that wait for another run leaves: the other one still closes the circle', async () => {
  const { semel, clock } = rig();
  const [aBegun, leftByOne] = [gate(), gate()];
  const leaving = new AbortController();
  const a: Tool = semel.tool({
    ...base,
    name: 'a',
    run: async (_: object) => {
      aBegun.resolve();
      await leftByOne.promise;
      return `a > ${await outer({})}`;
    },
  });
  const outer: Tool = semel.tool({
    ...base,
    name: 'outer',
    run: async (_: object) => {
      await aBegun.promise;
      const both = [a.try({}, { signal: leaving.signal }), a({})];
      await rest();
      leaving.abort();
      await both[0];
      leftByOne.resolve();
      return `outer > ${await both[1]}`;
    },
  });
  const startedAt = clock.mono();
  const results = await clock.until(Promise.all([a.try({}), outer.try({})]));
  // Otherwise both wait for their timeouts, of ten minutes.
  expect(clock.mono() - startedAt).toBeLessThan(60_000);
  expect(results.flatMap((result) => (result.ok ? [] : codesOf(result.error)))).toContain('REENTRANT');
});
