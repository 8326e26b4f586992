// `strict`: content whose difference is a conflict, as other idempotency layers validate the payload.

import { createSemel, day, landed, type ToolFunction } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, quick, rig } from './support.ts';

interface Order {
  readonly order: string;
  readonly amount?: number;
  readonly note?: string;
}

const base = { name: 'charge', effect: 'write-non-idempotent', per: 'ever' } as const;
const lists = { identity: ['order'], strict: ['amount'] } as const;
const first: Order = { order: 'o-1', amount: 10, note: 'hello' };
const other: Order = { ...first, amount: 20 };
const conflict = {
  ok: false,
  error: { code: 'KEY_CONFLICT', path: 'amount', evidence: { fields: ['amount'] } },
  receipt: { executed: false },
};

describe('a strict field', () => {
  test.each<[string, object]>([
    ['from the ledger', { cache: false }],
    ['from memory', {}],
  ])('that differs is a conflict, where the others only drift: %s', async (_, options) => {
    const semel = quick(options);
    let charged = 0;
    const charge = semel.tool({ ...base, ...lists, run: (_: Order) => ++charged });
    expect(await charge(first)).toBe(1);
    for (let n = 0; n < 3; n += 1) {
      expect(await charge.try(other)).toMatchObject(conflict);
      const { receipt, ...reworded } = await charge.try({ ...first, note: 'good morning' });
      expect({ ...reworded, drift: receipt.drift }).toEqual({ ok: true, value: 1, drift: ['note'] });
      expect(await charge.try({ order: 'o-1' })).toMatchObject(conflict);
    }
    expect(charged).toBe(1);
    const { error } = (await charge.try(other)) as { error: Error };
    expect(error.message).toContain('charge: an equal call was made with another `amount`.');
  });

  test('needs no other list: it is content', async () => {
    const semel = quick();
    const charge = semel.tool({ ...base, strict: ['amount'], run: (_: Order) => 1 });
    await charge(first);
    expect(await charge.try(other)).toMatchObject(conflict);
    expect(await charge.try({ ...first, note: 'another intent' })).toMatchObject({ ok: true });
  });

  test('a call that is being executed is not waited for', async () => {
    for (const another of [false, true]) {
      const { semel, another: second, clock } = rig();
      const { promise, resolve } = gate();
      const run = async (_: Order) => {
        await promise;
        return 1;
      };
      const charge = semel.tool({ ...base, ...lists, run });
      const elsewhere = another ? second().tool({ ...base, ...lists, run }) : charge;
      const running = charge(first);
      await clock.advance(10);
      expect(await clock.until(elsewhere.try(other))).toMatchObject(conflict);
      resolve();
      expect(await clock.until(running)).toBe(1);
    }
  });

  test('what is in doubt is neither verified nor run again with another value', async () => {
    const { semel, another, clock } = rig();
    const calls: string[] = [];
    const terms = { ...base, ...lists };
    const charge = semel.tool({
      ...terms,
      run: (_: Order): number => {
        calls.push('run');
        throw new Error('socket hang up');
      },
    });
    await clock.until(charge.try(first));
    await clock.advance(60 * 60_000);
    const deployed = another().tool({
      ...terms,
      verify: ({ amount }) => {
        calls.push('verify');
        return landed(amount ?? 0);
      },
      run: (_: Order): number => 0,
    });
    expect(await clock.until(deployed.try(other))).toMatchObject(conflict);
    expect(calls).toEqual(['run']);
    expect(await clock.until(deployed.try(first))).toMatchObject({ ok: true, value: 10 });
    expect(calls).toEqual(['run', 'verify']);
  });

  test('what did not land may be tried with another value', async () => {
    const semel = quick();
    let tries = 0;
    const charge = semel.tool({
      ...base,
      ...lists,
      classify: { ENO: 'notLanded' },
      run: ({ amount }: Order) => {
        if (++tries === 1) throw Object.assign(new Error('no'), { code: 'ENO' });
        return amount;
      },
    });
    expect(await charge.try(first)).toMatchObject({ ok: false, error: { code: 'NOT_LANDED' } });
    expect(await charge(other)).toBe(20);
    expect(await charge.try(first)).toMatchObject(conflict);
  });

  test.each([
    [{ identity: ['order', 'card.exp'] }],
    [{ identity: ['order'], volatile: ['card.exp'] }],
    [{ volatile: ['card.exp'] }],
  ])('is compared in its other parts where one of them is named elsewhere: %o', async (names) => {
    const semel = quick();
    const run = (_: { order: string; card: { exp: string; number: string } }) => 1;
    const charge = semel.tool({
      ...base,
      ...names,
      strict: ['card'],
      redact: ['cards'],
      run,
    } as never) as ToolFunction<Parameters<typeof run>[0], number>;
    const call = (number: string) => charge.try({ order: 'o-1', card: { exp: '12/27', number } });
    expect(await call('1')).toMatchObject({ ok: true });
    expect(await call('1')).toMatchObject({ ok: true, receipt: { replayed: true } });
    expect(await call('2')).toMatchObject({ ok: false, error: { code: 'KEY_CONFLICT', path: 'card' } });
  });

  test('is compared across an earlier form of the contract', async () => {
    const store = rig();
    const before = store.semel.tool({ ...base, ...lists, run: (_: Order) => 1 });
    await store.clock.until(before(first));
    const after = store.another().tool({
      ...base,
      ...lists,
      name: 'charge.order',
      was: [{ name: 'charge' }],
      run: (_: Order) => 2,
    });
    expect(await store.clock.until(after(first))).toBe(1);
    expect(await store.clock.until(after.try(other))).toMatchObject(conflict);
  });
});

test.each<[object, string]>([
  [{ identity: ['order'], strict: ['order'] }, '"order" is in `identity` and in `strict`'],
  [{ volatile: ['amount'], strict: ['amount'] }, '"amount" is in `volatile` and in `strict`'],
  [{ redact: ['amount'], strict: ['amount'] }, '"amount" is in `redact` and in `strict`'],
  [{ redact: ['card.number'], strict: ['card'] }, '"card" is in `redact` and in `strict`'],
  [{ identity: ['order'], redact: ['cards.number'], strict: ['cards'] }, '"cards" is in `redact`'],
  [{ redact: ['card'], strict: ['card.exp'] }, '"card.exp" is in `redact` and in `strict`'],
  [{ identity: ['order'], strict: ['card.last4'] }, "strict: ['card']"],
  [{ effect: 'write-idempotent', strict: ['amount'] }, 'always runs'],
  [{ strict: 'amount' }, 'must be a list'],
])('%j is refused', (more, message) => {
  const semel = createSemel({ store: 'memory:', namespace: 'test' });
  const define = () => semel.tool({ ...base, per: day(), ...more, run: (_: Order) => 1 } as never);
  expect(define).toThrow(message);
});
