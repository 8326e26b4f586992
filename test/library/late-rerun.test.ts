// A claim that is on its way while the record changes: what it was decided for is not there any more.

import { expect, test } from 'vitest';
import { gate, rest, rig } from './support.ts';

test('a delayed re-run of a harmless write does not repeat what a stricter contract has sent since', async () => {
  const made = rig();
  const base = { name: 'light.set', identity: ['id'], per: 'ever', lease: '30s' } as const;
  const sent: string[] = [];
  const loose = (run: () => unknown) =>
    made.another().tool({ ...base, effect: 'write-idempotent', run: (_: { id: number }) => run() });
  // It dies in the middle.
  void loose(() => new Promise(() => undefined)).try({ id: 1 });
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  made.store.repair();

  const claims = gate();
  let isHeld = true;
  made.store.before = async (method) => {
    if (method !== 'claim' || !isHeld) return;
    const isFirst = made.store.calls.filter((each) => each === 'claim').length === before + 1;
    if (!isFirst) {
      isHeld = false;
      await claims.promise;
    }
  };
  const before = made.store.calls.filter((each) => each === 'claim').length;
  // It finds the doubt, decides to run again, and its claim is delayed.
  const late = loose(() => void sent.push('loose')).try({ id: 1 });
  await made.clock.advance(100);
  expect(isHeld).toBe(false);

  // Meanwhile a person decides; and the new version, by which it is not harmless, sends and does not hear whether it landed.
  const [open] = (await made.semel.records.list({ inDoubt: true })).items;
  await made.semel.doubts.resolve(open!.ref, 'notLanded', { by: 'ann', force: true });
  const strict = made.another().tool({
    ...base,
    effect: 'irreversible',
    run: (_: { id: number }) => {
      sent.push('strict');
      throw new Error('socket hang up');
    },
  });
  expect(await made.clock.until(strict.try({ id: 1 }))).toMatchObject({ error: { code: 'IN_DOUBT' } });
  expect(sent).toEqual(['strict']);
  claims.resolve();
  expect(await made.clock.until(late)).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  expect(sent).toEqual(['strict']);
});
