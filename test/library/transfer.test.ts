// Records that leave for another ledger, and arrive there.

import { day, NotLanded, notLanded, type PortableRecord, Rejected, type Semel } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, type Rig, rest, rig } from './support.ts';

const base = { name: 'post', effect: 'irreversible', per: 'ever' } as const;
const again = (_: object): unknown => expect.fail('it ran again');

/** As a file would hold them. */
async function exported(semel: Semel): Promise<PortableRecord[]> {
  const records: PortableRecord[] = [];
  for await (const record of semel.records.export()) records.push(JSON.parse(JSON.stringify(record)));
  return records;
}

/** Each by a dry run first, which tells the same. */
async function move(from: Rig, to: Rig) {
  const arrivals = [];
  for (const record of await exported(from.semel)) {
    const told = await to.semel.records.import(record, { dryRun: true });
    const arrival = await to.semel.records.import(record);
    expect(told).toEqual(arrival);
    arrivals.push(arrival);
  }
  return arrivals;
}

function cut(): never {
  throw new Error('socket hang up');
}

test('what was done in one ledger is replayed by the other, deep-equal', async () => {
  const [from, to] = [rig(), rig()];
  const value = { at: new Date(0), ids: new Set([1n]), nothing: undefined };
  await from.semel.tool({ ...base, run: (_: object) => value })({ id: 1 });
  expect(await move(from, to)).toMatchObject([{ imported: true, as: 'succeeded' }]);
  expect(await to.semel.tool({ ...base, run: again })({ id: 1 })).toEqual(value);
});

test('importing twice changes nothing, and existing records are not overwritten', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.once('post', 'both', () => 'theirs');
  await from.semel.once('post', 'one', () => 'theirs');
  await to.semel.once('post', 'both', () => 'ours');
  const arrivals = await move(from, to);
  expect(arrivals.filter(({ imported }) => imported)).toHaveLength(1);
  const before = await exported(to.semel);
  const because = 'there is a record of it already (succeeded)';
  expect(await move(from, to)).toMatchObject([{ because }, { because }]);
  expect(await exported(to.semel)).toEqual(before);
  expect(await to.semel.once('post', 'both', () => expect.fail('it ran again'))).toBe('ours');
});

test('an import that was cut off between claim and settle is finished by the next', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.once('post', 1, () => 'done');
  const [record] = (await exported(from.semel)) as [PortableRecord];
  const cutOff = to.another({ store: { ...to.store, settle: () => new Promise(() => undefined) } });
  void cutOff.records.import(record);
  await rest();
  to.clock.jump(3_600_000);
  expect(await to.semel.records.import(record)).toMatchObject({ imported: true, as: 'succeeded' });
  expect(await to.semel.once('post', 1, () => expect.fail('it ran again'))).toBe('done');
});

test('a dry run reports the same, and changes nothing', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.once('post', 1, () => 'done');
  const [record] = (await exported(from.semel)) as [PortableRecord];
  const told = await to.semel.records.import(record, { dryRun: true });
  expect(await exported(to.semel)).toEqual([]);
  expect(told).toEqual(await to.semel.records.import(record));
  expect(await to.semel.records.import(record, { dryRun: true })).toMatchObject({ imported: false });
});

describe('a doubt arrives as a doubt', () => {
  test('what is in doubt', async () => {
    const [from, to] = [rig(), rig()];
    await from.semel.tool({ ...base, run: cut }).try({ id: 1 });
    expect(await move(from, to)).toMatchObject([{ as: 'in doubt' }]);
    const result = await to.semel.tool({ ...base, run: again }).try({ id: 1 });
    expect(result).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect((await to.semel.doubts.list()).items).toMatchObject([
      { args: { id: 1 }, error: { message: expect.stringContaining('socket hang up') } },
    ]);
  });

  test('what is being executed, even before the line', async () => {
    const [from, to] = [rig(), rig()];
    const { promise } = gate();
    void from.semel.tool({ ...base, run: () => promise }).try({ id: 1 });
    void from.semel.tool({ ...base, name: 'write', prepare: () => promise, run: again }).try({ id: 1 });
    await rest();
    expect(await move(from, to)).toMatchObject([{ as: 'in doubt' }, { as: 'in doubt' }]);
    const { items } = await to.semel.doubts.list();
    expect(items).toMatchObject([{ status: 'unknown' }, { status: 'unknown' }]);
    await expect(to.semel.doubts.resolve(items[0]!.ref, 'notLanded')).rejects.toThrow('may still land');
    await expect(to.semel.doubts.resolve(items[1]!.ref, 'notLanded')).rejects.toThrow('may still land');
  });

  test('what somebody freed to run again, at their own risk', async () => {
    const [from, to] = [rig(), rig()];
    await from.semel.tool({ ...base, run: cut }).try({ id: 1 });
    const [{ ref }] = (await from.semel.doubts.list()).items as readonly { ref: string }[] as readonly [
      { ref: string },
    ];
    await from.semel.doubts.resolve(ref, 'runAgain');
    expect(await move(from, to)).toMatchObject([{ as: 'in doubt' }]);
  });

  test('and its provider is asked under the key that it was sent', async () => {
    const [from, to] = [rig(), rig()];
    const sent: string[] = [];
    // A generation that failed before, so that the fences of the two ledgers differ.
    let outcome: () => never = () => {
      throw new Rejected('no');
    };
    const contract = { ...base, provider: { name: 'stripe', window: '60d' } } as const;
    const tool = from.semel.tool({
      ...contract,
      run: (_: object, ctx): unknown => {
        sent.push(ctx.key);
        return outcome();
      },
    });
    await tool.try({ id: 1 });
    from.clock.jump(2 * 3_600_000);
    to.clock.jump(2 * 3_600_000);
    outcome = cut;
    await tool.try({ id: 1 });
    await move(from, to);
    const resent: string[] = [];
    const there = to.semel.tool({ ...contract, run: (_: object, ctx) => resent.push(ctx.key) });
    expect(await there({ id: 1 })).toBe(1);
    expect(resent).toEqual([sent.at(-1)]);
    expect(sent[0]).not.toBe(sent[1]);
  });

  test('and its verifier is asked under that key too', async () => {
    const [from, to] = [rig(), rig()];
    const keys: string[] = [];
    await from.semel
      .tool({
        ...base,
        run: (_: object, ctx): unknown => {
          keys.push(ctx.key);
          return cut();
        },
      })
      .try({ id: 1 });
    await to.semel.once('other', 1, () => 1);
    await move(from, to);
    to.clock.jump(3_600_000);
    const tool = to.semel.tool({
      ...base,
      run: (_: object) => 'sent',
      verify: (_, ctx) => {
        keys.push(ctx.key);
        return notLanded();
      },
    });
    expect(await tool({ id: 1 })).toBe('sent');
    expect(keys[1]).toBe(keys[0]);
  });
});

test('what a person gave up stays given up', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.tool({ ...base, run: cut }).try({ id: 1 });
  const [{ ref }] = (await from.semel.doubts.list()).items as readonly { ref: string }[] as readonly [
    { ref: string },
  ];
  await from.semel.doubts.resolve(ref, { abandon: 'too late' });
  expect(await move(from, to)).toMatchObject([{ as: 'failed' }]);
  const result = await to.semel.tool({ ...base, run: again }).try({ id: 1 });
  expect(result).toMatchObject({ ok: false });
  const [record] = (await to.semel.records.list()).items;
  expect(record).toMatchObject({ status: 'failed', doubt: true });
  expect(record?.error?.message).toBe('Given up, may have landed: too late');
});

test('a free record under a newer form of its contract accepts an imported success or abandonment', async () => {
  const [from, to] = [rig(), rig()];
  const former = from.semel.tool({ ...base, run: ({ id }: { id: number }) => (id === 1 ? 'done' : cut()) });
  await former({ id: 1 });
  await former.try({ id: 2 });
  const [doubt] = (await from.semel.doubts.list()).items;
  await from.semel.doubts.resolve(doubt?.ref as string, { abandon: 'nobody knows' }, { by: 'ann' });

  const run = (_: { id: number }): unknown => {
    throw new NotLanded('not now');
  };
  const newer = to.semel.tool({ ...base, name: 'post.v2', was: [{ name: 'post' }], ifBusy: 'fail', run });
  for (const id of [1, 2]) await newer.try({ id });
  expect(await move(from, to)).toHaveLength(2);
  expect(await newer({ id: 1 })).toBe('done');
  expect(await newer.try({ id: 2 })).toMatchObject({ error: { code: 'FAILED' } });
  expect((await to.semel.doubts.list()).items).toEqual([]);
});

test('a link arrives too: a worker with the former contract does not do it once more', async () => {
  const [from, to] = [rig(), rig()];
  const form = { ...base, name: 'post.v2', was: [{ name: 'post' }] } as const;
  const kept = from.semel.tool({ ...form, run: (_: { id: number }) => 'done' });
  const daily = { ...base, name: 'note', per: day() } as const;
  const later = { ...daily, name: 'a-note', was: [{ name: 'note' }] } as const;
  for (const id of [1, 2]) await kept({ id });
  await from.semel.tool({ ...later, run: (_: { id: number }) => 'noted' })({ id: 1 });

  const released = (_: { id: number }): unknown => {
    throw new NotLanded('not now');
  };
  // A record that is free gives way, and one that answers stays.
  await to.semel.tool({ ...base, run: released }).try({ id: 2 });
  const arrivals = await move(from, to);
  expect(arrivals.filter((each) => each.imported && each.as === 'link')).toHaveLength(3);
  const before = await exported(to.semel);
  await move(from, to);
  expect(await exported(to.semel)).toEqual(before);

  const old = to.another();
  for (const id of [1, 2]) expect(await old.tool({ ...base, run: again })({ id })).toBe('done');
  expect(await old.tool({ ...daily, run: again })({ id: 1 })).toBe('noted');
});

test('an effect done here under a newer form of its contract already exists', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.tool({ ...base, run: (_: object) => 'there' })({ id: 1 });
  await to.semel.tool({ ...base, name: 'post.v2', was: [{ name: 'post' }], run: (_: object) => 'here' })({
    id: 1,
  });
  const because = 'there is a record of it already (succeeded)';
  expect(await move(from, to)).toMatchObject([{ imported: false, because }]);
});

test('a link takes nothing from a record that answers', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.tool({ ...base, name: 'post.v2', was: [{ name: 'post' }], run: (_: object) => 'there' })({
    id: 1,
  });
  await to.semel.tool({ ...base, run: (_: object) => 'here' })({ id: 1 });
  const because = 'there is a record of it already (succeeded)';
  expect(await move(from, to)).toMatchObject([{ imported: true }, { imported: false, because }]);
  expect(await to.another().tool({ ...base, run: again })({ id: 1 })).toBe('here');
});

test('a refusal ends when it would have ended there', async () => {
  const [from, to] = [rig(), rig()];
  const refuse = () => {
    throw new Rejected('no');
  };
  await from.semel.tool({ ...base, run: refuse }).try({ id: 1 });
  to.clock.jump(50 * 60_000);
  expect(await move(from, to)).toMatchObject([{ as: 'failed' }]);
  const tool = to.semel.tool({ ...base, run: (_: object) => 'sent' });
  expect(await tool.try({ id: 1 })).toMatchObject({ ok: false });
  to.clock.jump(11 * 60_000);
  expect(await tool({ id: 1 })).toBe('sent');
});

test('a success answers as long as it would have answered there', async () => {
  const [from, to] = [rig(), rig()];
  const contract = { ...base, per: 'conversation', window: '1d' } as const;
  const on = { conversation: 'c' };
  await from.semel.tool({ ...contract, run: (_: object) => 'first' })({ id: 1 }, on);
  to.clock.jump(23 * 3_600_000);
  await move(from, to);
  const tool = to.semel.tool({ ...contract, run: (_: object) => 'second' });
  expect(await tool({ id: 1 }, on)).toBe('first');
  to.clock.jump(2 * 3_600_000);
  expect(await tool({ id: 1 }, on)).toBe('second');
  expect(await move(from, to)).toMatchObject([{ imported: false, because: 'its window is over' }]);
});

test('what did not land is left behind: it may run again', async () => {
  const [from, to] = [rig(), rig()];
  const attempt = await from.semel.begin(from.semel.tool({ ...base, run: again }), { id: 1 });
  if (attempt.execute) await attempt.attempt.release();
  expect(await move(from, to)).toMatchObject([{ because: 'it did not land, and may run again' }]);
  expect(await exported(to.semel)).toEqual([]);
});

test('a caller’s own key is still guarded against other args', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.tool({ ...base, run: (_: object) => 'done' })({ id: 1 }, { key: 'k' });
  await move(from, to);
  const tool = to.semel.tool({ ...base, run: again });
  expect(await tool({ id: 1 }, { key: 'k' })).toBe('done');
  expect(await tool.try({ id: 2 }, { key: 'k' })).toMatchObject({ error: { code: 'KEY_CONFLICT' } });
});

test('a record whose args nobody knows conflicts with none', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.tool({ ...base, run: (_: object) => 'done' })({ id: 1 }, { key: 'k' });
  await from.semel.tool({ ...base, name: 'cut', run: cut }).try({ id: 1 }, { key: 'k' });
  for (const { fingerprint: _, ...record } of await exported(from.semel))
    await to.semel.records.import(record);
  expect(await to.semel.tool({ ...base, run: again })({ id: 2 }, { key: 'k' })).toBe('done');
  const held = to.semel.tool({ ...base, name: 'cut', run: again, verify: () => notLanded() });
  expect(await held.try({ id: 2 }, { key: 'k' })).toMatchObject({ error: { code: 'IN_DOUBT' } });
});

test('the history says what it was and when', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.once('post', 1, () => 'done');
  await from.semel.once('post', 1, () => 'done');
  to.clock.jump(60_000);
  const [record] = (await exported(from.semel)) as [PortableRecord];
  await to.semel.records.import(record);
  expect(await to.semel.records.history(record.key)).toMatchObject([
    {
      type: 'noted',
      detail: {
        imported: { status: 'succeeded', settledAt: '2026-06-19T09:02:00.000Z' },
        history: [{ type: 'replayed', at: '2026-06-19T09:02:00.000Z' }],
      },
    },
  ]);
});

test('the fences of every store are taken in: those of Redis begin at the time in microseconds', async () => {
  const [from, to] = [rig(), rig()];
  await from.semel.once('post', 1, () => 'done');
  const [record] = (await exported(from.semel)) as [PortableRecord];
  const fence = Date.now() * 1_000;
  const fences = { fence, generation: fence, providerKeyFence: fence };
  expect(await to.semel.records.import({ ...record, ...fences })).toMatchObject({ imported: true });
  const beyond = { ...record, key: `${record.key}x`, fence: 2 ** 52 };
  await expect(to.semel.records.import(beyond)).rejects.toThrow('its `fence` cannot be read');
});

test('input that is not a record, or belongs to another namespace, is refused with the reason', async () => {
  const [from, to] = [rig(), rig({ namespace: 'elsewhere' })];
  await from.semel.once('post', 1, () => 'done');
  const [record] = (await exported(from.semel)) as [PortableRecord];
  const refused = (over: object) => from.semel.records.import({ ...record, ...over } as PortableRecord);
  await expect(to.semel.records.import(record)).rejects.toThrow(
    'belongs to the namespace test, not elsewhere',
  );
  await expect(refused({ semel: 2 })).rejects.toThrow('it has form 2, not 1');
  await expect(refused({ key: undefined })).rejects.toThrow('it has no `key`');
  await expect(refused({ key: 'other/-/x' })).rejects.toThrow('its key is not of its contract');
  await expect(refused({ status: 'done' })).rejects.toThrow('its `status` cannot be read');
  await expect(refused({ value: { $semel: 'Socket' } })).rejects.toThrow('its `value` cannot be read');
});
