// The id that an attempt noted is about that attempt: once it is known not to have landed, `verify` of a later attempt must
// not be given it. It would answer for the wrong effect.

import { NotLanded, notLanded, unsure, type Verification, type VerifyContext } from 'semel';
import { expect, test } from 'vitest';
import { type Rig, rig } from './support.ts';

const pay = { name: 'pay', effect: 'write-non-idempotent', per: 'ever', identity: ['order'] } as const;

interface Order {
  order: string;
}

/** Each payment gets an id; only the first attempt lives to note it. `verify` looks up what was noted, and nothing else. */
function payments({ semel }: Rig, more: object = {}, failsWith: (nth: number) => Error = () => reset()) {
  const asked: (string | undefined)[] = [];
  const paid: string[] = [];
  const tool = semel.tool({
    ...pay,
    lease: '30s',
    timeout: '1m',
    verifyAfter: '5s',
    ...more,
    run: (_: Order, ctx): unknown => {
      const id = `pay_${paid.length + 1}`;
      paid.push(id);
      if (id === 'pay_1') ctx.note(id);
      throw failsWith(paid.length);
    },
    verify: (_, { remoteRef }: VerifyContext): Verification => {
      asked.push(remoteRef);
      // The first was declined; of any other, nobody knows.
      return remoteRef === 'pay_1' ? notLanded() : unsure('no id was noted');
    },
  });
  return { tool, asked, paid };
}

const reset = () => new Error('socket hang up');

test('after "not landed", an id that was noted before says nothing about the attempt that follows', async () => {
  const made = rig();
  const { tool, asked, paid } = payments(made);
  for (let call = 0; call < 5; call += 1) {
    await made.clock.until(tool.try({ order: 'o-1' }));
    await made.clock.advance(120_000);
  }
  expect(paid).toEqual(['pay_1', 'pay_2']);
  expect(asked.slice(0, 3)).toEqual(['pay_1', 'pay_1', undefined]);
});

test.each(['notLanded', 'runAgain'] as const)('the same after a person said "%s"', async (verdict) => {
  const made = rig();
  const { tool, asked, paid } = payments(made);
  await tool.try({ order: 'o-1' });
  const [doubt] = (await made.semel.doubts.list()).items;
  expect(doubt?.remoteRef).toBe('pay_1');
  const decided = await made.semel.doubts.resolve(`${doubt?.ref}`, verdict, { by: 'ann', force: true });
  // Until it runs again, people still see it.
  expect(decided.remoteRef).toBe('pay_1');
  for (let call = 0; call < 3; call += 1) {
    await made.clock.until(tool.try({ order: 'o-1' }));
    await made.clock.advance(120_000);
  }
  expect(paid).toEqual(['pay_1', 'pay_2']);
  expect(new Set(asked.slice(1))).toEqual(new Set([undefined]));
});

test('the same inside one attempt, after a try that did not land', async () => {
  const made = rig();
  const fails = (nth: number) => (nth === 1 ? new NotLanded('declined') : reset());
  const { tool, asked, paid } = payments(made, { retry: { tries: 2, backoff: '1s' } }, fails);
  for (let call = 0; call < 3; call += 1) {
    await made.clock.until(tool.try({ order: 'o-1' }));
    await made.clock.advance(120_000);
  }
  expect(paid).toEqual(['pay_1', 'pay_2']);
  expect(new Set(asked)).toEqual(new Set([undefined]));
});
