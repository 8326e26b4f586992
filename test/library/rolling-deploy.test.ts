// While a deployment rolls, workers with the former contract and workers with the new one run side by side: `was` makes
// them meet on one record, whichever comes first.

import { createSemel, day, type SemelOptions } from 'semel';
import { memoryStore } from 'semel/memory';
import { describe, expect, test } from 'vitest';
import { remoteStore } from '../../src/store/remote/remote-store.ts';
import type { Store } from '../../src/store/store.ts';
import { remoteMemoryBackend } from '../stores/remote-memory-backend.ts';
import { fakeClock, rest } from './support.ts';

// biome-ignore lint/suspicious/noExplicitAny: contracts of every form
type Any = any;

const base = { name: 'mail', effect: 'write-non-idempotent', per: 'ever' } as const;
const dayMs = 24 * 3_600_000;
const mail = { per: 'turn', window: '10d' } as const;
const on = { conversation: 'c', turn: 't', run: 'r', at: new Date('2026-06-19T09:00:00Z') };

const stores: readonly (readonly [string, (clock: ReturnType<typeof fakeClock>) => Store])[] = [
  ['a local store', (clock) => memoryStore({ clock })],
  [
    'a far store',
    (clock) =>
      remoteStore(
        remoteMemoryBackend(() => clock.now()),
        { clock },
      ),
  ],
];

describe.each(stores)('on %s', (_name, storeOn) => {
  function deployment() {
    const clock = fakeClock();
    const store = storeOn(clock);
    const sent: string[] = [];
    const worker = (form: object, options: SemelOptions = {}) => {
      const semel = createSemel({
        store,
        clock,
        namespace: 'shop',
        cache: false,
        onWarning: () => undefined,
        ...options,
      });
      const run = (args: Any) => {
        sent.push(JSON.stringify(args));
        return sent.length;
      };
      const tool = semel.tool({ ...base, run, ...form } as Any) as Any;
      return { semel, call: (args: object, more: object = {}) => tool.try(args, { ...on, ...more }) };
    };
    return { clock, store, sent, worker };
  }

  const args = { id: 1, region: 'eu' };
  const forms: [string, object, object][] = [
    ['renamed', { name: 'old' }, { name: 'new', was: [{ name: 'old' }] }],
    [
      'with a finer identity',
      { identity: ['id'] },
      { identity: ['id', 'region'], was: [{ identity: ['id'] }] },
    ],
    [
      'with a coarser identity',
      { identity: ['id', 'region'] },
      { identity: ['id'], was: [{ identity: ['id', 'region'] }] },
    ],
    ['with a longer period', { per: 'turn' }, { per: 'ever', was: [{ per: 'turn' }] }],
    ['with a shorter period', { per: 'ever' }, { per: day(), was: [{ per: 'ever' }] }],
    [
      'all at once',
      { name: 'old', identity: ['id'], per: 'conversation' },
      { name: 'new', per: 'run', was: [{ name: 'old', identity: ['id'], per: 'conversation' }] },
    ],
  ];

  test.each(forms)('a tool %s is run once, whichever worker comes first', async (_form, before, after) => {
    for (const order of [
      [after, before],
      [before, after],
      [after, before, after, before],
    ]) {
      const { worker, sent } = deployment();
      const results = [];
      for (const form of order) results.push(await worker(form).call(args));
      expect(results.map((each) => each.value)).toEqual(order.map(() => 1));
      expect(sent).toHaveLength(1);
    }
  });

  test('three versions meet, in any order', async () => {
    const versions = [
      { name: 'a' },
      { name: 'b', was: [{ name: 'a' }] },
      { name: 'c', was: [{ name: 'b' }, { name: 'a' }] },
    ];
    for (const order of [
      [2, 1, 0],
      [2, 0, 1],
      [1, 0, 2],
      [1, 2, 0],
      [0, 2, 1],
    ]) {
      const { worker, sent } = deployment();
      for (const version of order) await worker(versions[version] as object).call(args);
      expect(sent).toHaveLength(1);
    }
  });

  test('at the same time too', async () => {
    const { worker, sent, clock } = deployment();
    const before = worker({ name: 'old' });
    const after = worker({ name: 'new', was: [{ name: 'old' }] });
    const calls = [after.call(args), before.call(args), after.call(args), before.call(args)];
    const results = await clock.until(Promise.all(calls));
    expect(results.map((each: Any) => each.value)).toEqual([1, 1, 1, 1]);
    expect(sent).toHaveLength(1);
  });

  test('one old intent that has become two is stopped by either, and stops neither', async () => {
    const { worker, sent } = deployment();
    const before = worker({ identity: ['id'] });
    const after = worker({ identity: ['id', 'region'], was: [{ identity: ['id'] }] });
    await after.call({ id: 1, region: 'eu' });
    await after.call({ id: 1, region: 'us' });
    expect(sent).toHaveLength(2);
    await before.call({ id: 1, region: 'us' });
    await before.call({ id: 1, region: 'eu' });
    expect(sent).toHaveLength(2);
    expect((await before.call({ id: 2, region: 'eu' })).receipt.executed).toBe(true);
  });

  test('what the new worker left in doubt is in doubt for the old one', async () => {
    const { worker, sent, clock } = deployment();
    const after = worker({ name: 'new', was: [{ name: 'old' }], run: () => new Promise(() => undefined) });
    void after.call(args);
    await rest();
    clock.jump(120_000);
    const result = await clock.until(worker({ name: 'old' }).call(args));
    expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(sent).toEqual([]);
  });

  test('a call after `notAfter` with the old form gets the result of what the new worker did in time', async () => {
    const { worker, sent, clock } = deployment();
    const notAfter = new Date(clock.now() + 60_000);
    const form = { name: 'new', was: [{ name: 'old' }] };
    await worker(form).call({ id: 1 }, { notAfter });
    void worker({ ...form, run: () => new Promise(() => undefined) }).call({ id: 2 }, { notAfter });
    await rest();
    clock.jump(120_000);
    const before = worker({ name: 'old' });
    const late = (id: number) => clock.until(before.call({ id }, { notAfter }));
    expect(await late(2)).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(await late(1)).toMatchObject({ ok: true, value: 1 });
    expect(await late(3)).toMatchObject({ ok: false, error: { code: 'EXPIRED' } });
    const observed = worker({ name: 'old', mode: 'observe' }).call({ id: 1 }, { notAfter });
    expect(await clock.until(observed)).toMatchObject({ receipt: { observed: 'replay' } });
    expect(sent).toHaveLength(2);
  });

  test('what the new worker released is run once by the old one, and not again by the new', async () => {
    const { worker, sent } = deployment();
    const form = { name: 'new', was: [{ name: 'old' }], classify: () => 'notLanded' };
    const fails = () => {
      throw new Error('refused');
    };
    expect(await worker({ ...form, run: fails }).call(args)).toMatchObject({ ok: false });
    expect((await worker({ name: 'old' }).call(args)).receipt.executed).toBe(true);
    expect((await worker(form).call(args)).receipt.replayed).toBe(true);
    expect(sent).toHaveLength(1);
  });

  test('a worker that died between its link and its claim does not block others', async () => {
    const { worker, sent, store } = deployment();
    const after = { name: 'new', was: [{ name: 'old' }] };
    const { key } = await worker(after).semel.keyOf(
      { contract: { name: 'new', effect: 'irreversible' } } as Any,
      args,
    );
    await worker(after).call(args);
    const made = await store.read('shop', key);
    await store.resolve({
      namespace: 'shop',
      key,
      seen: { fence: made?.fence ?? 0, dispatchedAt: made?.lastDispatchedAt ?? null },
      decidedAt: Number.MAX_SAFE_INTEGER,
      act: { type: 'forget' },
      token: 'forget',
      by: 'test',
      note: null,
      force: false,
    });
    await store.prune(10);
    expect((await worker({ name: 'old' }).call(args)).receipt.executed).toBe(true);
    expect((await worker(after).call(args)).receipt.replayed).toBe(true);
    expect(sent).toHaveLength(2);
  });

  test('a link lasts as long as the record that it leads to, however old the link is', async () => {
    const { worker, sent, clock, store } = deployment();
    const after = worker({ ...mail, name: 'new', was: [{ name: 'old' }] });
    await after.call(args);
    clock.jump(35 * dayMs);
    await after.call(args);
    expect(sent).toHaveLength(2);
    clock.jump(7 * dayMs);
    await store.prune(10);
    expect((await worker({ ...mail, name: 'old' }).call(args)).receipt.replayed).toBe(true);
    expect(sent).toHaveLength(2);
  });

  test('a link leads to its record in another ledger too', async () => {
    const [there, here] = [deployment(), deployment()];
    const form = { name: 'new', was: [{ name: 'old' }] };
    const { semel, call } = there.worker(form);
    await call(args);
    const { records } = here.worker(form).semel;
    for await (const record of semel.records.export()) await records.import(record);
    expect(await here.worker({ name: 'old' }).call(args)).toMatchObject({ value: 1 });
    expect(here.sent).toEqual([]);
  });

  test('a call that an adapter dispatches again in another turn is found by the other version', async () => {
    const { worker, sent } = deployment();
    const turn = { effect: 'irreversible', per: 'turn' } as const;
    const toolCallId = 'call_8f3Kd92hslQpz71mXc04';
    await worker({ ...turn, name: 'new', was: [{ name: 'old' }] }).call(args, { turn: 't1', toolCallId });
    const again = await worker({ ...turn, name: 'old' }).call(args, { turn: 't2', toolCallId });
    expect(again.receipt.replayed).toBe(true);
    expect(sent).toHaveLength(1);
  });
});

test('a link that was left under a wrong clock goes no earlier than its record', async () => {
  const clock = fakeClock();
  let offMs = -40 * dayMs;
  const store = memoryStore({
    time: () => ({ wall: clock.now() + offMs, mono: clock.mono(), boot: 'b', steady: offMs === 0 }),
  });
  const sent: unknown[] = [];
  const run = (args: Any) => sent.push(args);
  const worker = (form: object) => {
    const options = { store, clock, namespace: 'shop', cache: false, onWarning: () => undefined } as const;
    const tool = createSemel(options).tool({ ...base, ...mail, run, ...form } as Any) as Any;
    return () => tool.try({ id: 1 }, on);
  };
  await worker({ name: 'new', was: [{ name: 'old' }] })();
  offMs = 0;
  await store.prune(10);
  expect((await worker({ name: 'old' })()).receipt.replayed).toBe(true);
  expect(sent).toHaveLength(1);
});
