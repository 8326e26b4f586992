// Looking at the ledger, its two acts on settled records, and calls in two halves.

import { createSemel, day, NotLanded, Rejected, type SemelError } from 'semel';
import { memoryStore } from 'semel/memory';
import { describe, expect, test } from 'vitest';
import { flaky, gate, quick, rest, rig } from './support.ts';

const base = { name: 'post', effect: 'write-non-idempotent', per: 'conversation' } as const;
const on = { conversation: 'c1', turn: '3', toolCallId: 'call_7', run: 'r9' };

async function errorOf(promise: Promise<unknown>): Promise<SemelError> {
  return promise.then(
    () => expect.fail('it should have been refused'),
    (error) => error as SemelError,
  );
}

describe('doubts', () => {
  test('are listed page by page, in one order, and no page is read twice', async () => {
    const made = rig();
    const tool = made.semel.tool({
      ...base,
      run: (_args: object) => {
        throw new Error('reset');
      },
    });
    const dead = flaky(made.store);
    const dying = made.another({ store: dead }).tool({ ...base, run: (_args: object) => gate().promise });
    for (let id = 1; id < 12; id += 2) await tool.try({ id }, on);
    for (let id = 0; id < 12; id += 2) void dying.try({ id }, on);
    await rest();
    dead.break();
    made.clock.jump(120_000);
    const all = await made.semel.doubts.list();
    expect(all.items).toHaveLength(12);
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await made.semel.doubts.list({ limit: 5, ...(after === undefined ? {} : { after }) });
      seen.push(...page.items.map(({ key }) => key));
      if (page.next === undefined) break;
      after = page.next;
    }
    expect(seen).toEqual(all.items.map(({ key }) => key));
    expect(seen).toEqual([...seen].sort());
    const before = made.store.calls.length;
    await made.semel.doubts.list({ limit: 5, after: seen[4]! });
    expect(made.store.calls.length - before).toBe(2);
  });

  test('the reason for giving up is one line', async () => {
    const { semel } = rig();
    const tool = semel.tool({
      ...base,
      run: (_args: object) => {
        throw new Error('reset');
      },
    });
    await tool.try({ id: 1 }, on);
    const [doubt] = (await semel.doubts.list()).items;
    const { error } = await semel.doubts.resolve(doubt!.ref, { abandon: 'no\u001b[2J\nuse' });
    expect(error?.message).toBe('Given up, may have landed: no [2J use');
  });
});

test('expired records are removed in the background until none is left', async () => {
  const made = rig();
  const tool = made.semel.tool({ ...base, window: '1m', run: (_args: object) => 1 });
  for (let id = 0; id < 1_000; id += 1) await tool({ id }, on);
  await made.clock.advance(11 * 60_000);
  expect((await made.store.list({ namespace: 'test', limit: 2_000 })).items).toEqual([]);
  await made.semel.close();
});

describe('records', () => {
  test('a record shows everything that is known of it', async () => {
    const made = rig();
    const tool = made.semel.tool({
      ...base,
      version: '2.1',
      run: (_args: object, ctx) => {
        ctx.note('msg_7');
        return { sent: new Date(0) };
      },
    });
    const { receipt } = await tool.try({ id: 7 }, { ...on, notAfter: made.clock.now() + 5 });
    const record = await made.semel.records.get(receipt.key);
    expect(record).toMatchObject({
      id: receipt.id,
      ref: `${receipt.id}@1`,
      namespace: 'test',
      contract: 'post',
      key: receipt.key,
      version: '2.1',
      effect: 'write-non-idempotent',
      status: 'succeeded',
      inDoubt: false,
      lapsed: false,
      abandoned: false,
      doubt: false,
      attempts: 1,
      fence: 1,
      generation: 1,
      args: { id: 7 },
      value: { sent: new Date(0) },
      remoteRef: 'msg_7',
      settledAt: new Date(made.clock.now()),
      expiresAt: new Date(made.clock.now() + 86_400_000),
      notAfter: new Date(made.clock.now() + 5),
      conversation: 'c1',
      turn: '3',
      toolCallId: 'call_7',
      run: 'r9',
    });
    expect(record?.owner).toMatch(/:\d+(~[0-9a-f]{12})?$/);
  });

  test('a record is found by its key, its id, and a part of its id that is enough', async () => {
    const { semel } = rig();
    const tool = semel.tool({ ...base, run: () => 1 });
    const { receipt } = await tool.try({ id: 1 }, on);
    for (const name of [receipt.key, receipt.id, receipt.id.slice(0, 6)])
      expect((await semel.records.get(name))?.key).toBe(receipt.key);
    expect(await semel.records.get('nobody')).toBeUndefined();
    expect(await semel.records.get('post/none/0')).toBeUndefined();
    const keyed = await tool.try({ id: 1 }, { ...on, key: 'mine' });
    expect((await semel.records.get(keyed.receipt.id))?.key).toBe('post/=mine');
  });

  test('a part that is not enough is refused', async () => {
    const { semel } = rig();
    const tool = semel.tool({ ...base, run: () => 1 });
    for (let id = 0; id < 60; id += 1) await tool({ id }, on);
    const first = (await tool.try({ id: 0 }, on)).receipt.id[0]!;
    expect(await errorOf(semel.records.get(first))).toMatchObject({ code: 'INVALID_ARGS' });
  });

  test('lists are filtered and paged, each record once', async () => {
    const { semel } = rig();
    const post = semel.tool({ ...base, run: (args: { id: number }) => args.id });
    const mail = semel.tool({
      ...base,
      name: 'mail',
      run: () => {
        throw new Rejected('no');
      },
    });
    for (let id = 0; id < 25; id += 1) await post({ id }, { conversation: `c${id % 2}` });
    for (let id = 0; id < 3; id += 1) await mail.try({ id }, on);
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await semel.records.list({ contract: 'post', limit: 10, ...(after && { after }) });
      seen.push(...page.items.map(({ key }) => key));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toHaveLength(25);
    expect(new Set(seen).size).toBe(25);
    expect((await semel.records.list({ status: 'failed' })).items).toHaveLength(3);
    expect((await semel.records.list({ conversation: 'c1' })).items).toHaveLength(12 + 3);
    expect((await semel.records.list({ prefix: 'mail/' })).items).toHaveLength(3);
    expect((await semel.records.list({ inDoubt: true })).items).toEqual([]);
  });

  test('namespaces do not see each other', async () => {
    const made = rig();
    await made.semel.tool({ ...base, run: () => 1 })({ id: 1 }, on);
    const other = made.another({ namespace: 'other' });
    let ran = 0;
    await other.tool({ ...base, run: () => ++ran })({ id: 1 }, on);
    expect(ran).toBe(1);
    expect((await other.records.list()).items).toHaveLength(1);
    const [record] = (await made.semel.records.list()).items;
    expect(await other.records.get(record!.key)).toBeUndefined();
  });

  test('history shows who made replayed calls, and what was decided', async () => {
    const { semel } = rig();
    const tool = semel.tool({ ...base, run: () => 1 });
    const { key } = (await tool.try({}, on)).receipt;
    await tool({}, { ...on, turn: '4' });
    await semel.records.forget(key, { by: 'ann', note: 'test data' });
    const history = await semel.records.history(key);
    expect(history.map(({ type }) => type).sort()).toEqual(['replayed', 'resolved']);
    expect(history.find(({ type }) => type === 'replayed')?.detail).toMatchObject({
      conversation: 'c1',
      turn: '4',
    });
    expect(history.find(({ type }) => type === 'resolved')?.detail).toMatchObject({
      act: 'forget',
      by: 'ann',
    });
  });

  test('history shows which fields of a replayed call differed', async () => {
    const { semel } = rig();
    const tool = semel.tool({
      ...base,
      identity: ['to'],
      run: (_: { to: string; body: string }) => 1,
    });
    const { key } = (await tool.try({ to: 'ann', body: 'one' }, on)).receipt;
    await tool({ to: 'ann', body: 'one' }, on);
    await tool({ to: 'ann', body: 'two' }, on);
    const history = await semel.records.history(key);
    expect(history.map(({ type, detail }) => [type, detail.drift])).toEqual([
      ['replayed', undefined],
      ['replayed', ['body']],
    ]);
  });

  test('under an earlier form of the contract words cannot be compared, and history does not say that they differ', async () => {
    const { semel, another } = rig();
    const run = (_: { to: string; body: string }) => 1;
    const before = semel.tool({ ...base, name: 'mail', identity: ['to'], run });
    const { key } = (await before.try({ to: 'ann', body: 'one' }, on)).receipt;
    const later = another();
    const now = later.tool({ ...base, identity: ['to'], was: [{ name: 'mail' }], run });
    expect(await now.try({ to: 'ann', body: 'one' }, on)).toMatchObject({ receipt: { replayed: true, key } });
    const history = await later.records.history(key);
    expect(history.map(({ type, detail }) => [type, detail.drift])).toEqual([['replayed', undefined]]);
  });

  test('forget ends the window now: the next call executes, with a new key at the provider', async () => {
    const { semel } = rig();
    const keys: string[] = [];
    const tool = semel.tool({ ...base, run: (_args: object, ctx) => keys.push(ctx.key) });
    const { key } = (await tool.try({}, on)).receipt;
    await semel.records.forget(key);
    expect(await tool({}, on)).toBe(2);
    expect(new Set(keys).size).toBe(2);
  });

  test('what is running or in doubt cannot be forgotten', async () => {
    const { semel } = rig();
    const end = gate();
    const running = semel.tool({ ...base, run: () => end.promise });
    const call = running({}, on);
    await rest();
    const [record] = (await semel.records.list()).items;
    expect(await errorOf(semel.records.forget(record!.key))).toMatchObject({ code: 'RESOLVE_STALE' });
    end.resolve();
    await call;
    expect(await errorOf(semel.records.forget('post/none/0'))).toMatchObject({
      code: 'INVALID_ARGS',
      path: 'key',
    });
  });

  test('reopen makes a failure free again; a success cannot be reopened', async () => {
    const { semel } = rig();
    let refuses = true;
    const tool = semel.tool({
      ...base,
      run: () => {
        if (refuses) throw new Rejected('card expired');
        return 'done';
      },
    });
    const { key } = (await tool.try({}, on)).receipt;
    refuses = false;
    expect(await tool.try({}, on)).toMatchObject({ ok: false, error: { code: 'FAILED' } });
    expect(await semel.records.reopen(key)).toMatchObject({ status: 'released' });
    expect(await tool({}, on)).toBe('done');
    expect(await errorOf(semel.records.reopen(key))).toMatchObject({ code: 'RESOLVE_STALE' });
  });

  test('prune works in small batches until nothing is left', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => 1 });
    for (let id = 0; id < 23; id += 1) await tool({ id }, on);
    made.clock.jump(2 * 86_400_000);
    expect(await made.semel.records.prune({ batch: 5 })).toBe(23);
    expect(made.store.calls.filter((method) => method === 'prune').length).toBeGreaterThanOrEqual(5);
  });

  test('a dry prune counts what has expired, and takes nothing', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...base, run: () => 1 });
    for (let id = 0; id < 7; id += 1) await tool({ id }, on);
    expect(await made.semel.records.prune({ dryRun: true })).toBe(0);
    made.clock.jump(2 * 86_400_000);
    expect(await made.semel.records.prune({ dryRun: true })).toBe(7);
    expect((await made.semel.records.list()).items.map(({ expired }) => expired)).toEqual(
      Array(7).fill(true),
    );
    expect(await made.semel.records.prune()).toBe(7);
    expect(await made.semel.records.prune({ dryRun: true })).toBe(0);
  });

  test('forget and reopen by a ref act only on what was looked at', async () => {
    const { semel } = rig();
    let refuses = true;
    const tool = semel.tool({
      ...base,
      run: (_args: object) => {
        if (refuses) throw new Rejected('card expired');
        return 'done';
      },
    });
    const { key } = (await tool.try({}, on)).receipt;
    const failed = await semel.records.get(key);
    await semel.records.reopen(failed!.ref);
    refuses = false;
    await tool({}, on);
    const done = await semel.records.get(key);
    expect(await errorOf(semel.records.forget(failed!.ref))).toMatchObject({ code: 'RESOLVE_STALE' });
    expect(await errorOf(semel.records.reopen(failed!.ref))).toMatchObject({ code: 'RESOLVE_STALE' });
    expect(await semel.records.get(key)).toMatchObject({ status: 'succeeded', expired: false });
    expect(await semel.records.forget(`${key}${done!.ref.slice(done!.ref.indexOf('@'))}`)).toMatchObject({
      expired: true,
    });
  });

  test('the history of a replay tells which content differed', async () => {
    const { semel } = rig();
    const tool = semel.tool({ ...base, identity: ['id'], run: (_args: { id: number; text: string }) => 1 });
    await tool({ id: 1, text: 'a' }, on);
    await tool({ id: 1, text: 'b' }, on);
    const { receipt } = await tool.try({ id: 1, text: 'a' }, on);
    const history = await semel.records.history(receipt.key);
    expect(history.map(({ detail }) => detail.drift)).toEqual([['text'], undefined]);
  });
});

describe('begin', () => {
  const definition = { ...base, run: () => expect.fail('not run') };

  async function begun(args: object = {}) {
    const semel = quick();
    const tool = semel.tool({ ...definition, run: (_args: object): string => expect.fail('not run') });
    const first = await semel.begin(tool, args, on);
    if (!first.execute) return expect.fail('it should execute');
    return { semel, tool, attempt: first.attempt };
  }

  test('succeed settles, and every later call gets the value', async () => {
    const { semel, tool, attempt } = await begun();
    expect(attempt.key).toMatch(/^[0-9a-f-]{36}$/);
    expect(attempt.args).toEqual({});
    attempt.note('msg_7');
    expect(await attempt.succeed('done')).toMatchObject({
      ok: true,
      value: 'done',
      receipt: { remoteRef: 'msg_7' },
    });
    expect(await semel.begin(tool, {}, on)).toMatchObject({
      execute: false,
      result: { ok: true, value: 'done', receipt: { replayed: true } },
    });
    expect(await tool({}, on)).toBe('done');
  });

  test.each([
    ['fail', 'FAILED', 'failed'],
    ['release', 'NOT_LANDED', 'released'],
    ['unknown', 'IN_DOUBT', 'unknown'],
  ] as const)('%s settles as it says', async (how, code, status) => {
    const { semel, attempt } = await begun();
    const result = await attempt[how](new Error('mine'));
    expect(result).toMatchObject({ ok: false, error: { code } });
    expect(result.ok ? '' : result.error.message).toMatch(/mine/);
    expect((await semel.records.list()).items[0]).toMatchObject({ status });
  });

  test('threw lets the contract say what the error means', async () => {
    const one = await begun();
    expect(await one.attempt.threw(new NotLanded('later'))).toMatchObject({ error: { code: 'NOT_LANDED' } });
    const two = await begun();
    expect(await two.attempt.threw(new Error('reset'))).toMatchObject({ error: { code: 'IN_DOUBT' } });
  });

  test('the first settlement counts, a second changes nothing', async () => {
    const { semel, attempt } = await begun();
    await attempt.succeed('first');
    await attempt.fail(new Error('later'));
    expect((await semel.records.list()).items[0]).toMatchObject({ status: 'succeeded', value: 'first' });
  });

  test('a second begin waits for the first', async () => {
    const { semel, tool, attempt } = await begun();
    const second = semel.begin(tool, {}, on);
    await rest();
    await attempt.succeed('done');
    expect(await second).toMatchObject({ execute: false, result: { ok: true, value: 'done' } });
  });

  test('bad input is refused before anything is claimed', async () => {
    const made = rig();
    const tool = made.semel.tool(definition);
    expect(await errorOf(made.semel.begin(tool, {}))).toMatchObject({ code: 'NO_IDENTITY' });
    expect(made.store.calls).toEqual([]);
  });

  test('not settled by the caller: in doubt after the timeout', async () => {
    const made = rig();
    const tool = made.semel.tool({ ...definition, timeout: '5m' });
    await made.semel.begin(tool, {}, on);
    await made.clock.advance(5 * 60_000);
    expect((await made.semel.records.list()).items[0]).toMatchObject({ status: 'unknown' });
  });
});

test('keyOf returns the key that a call would have, and its parts', async () => {
  const semel = createSemel({ store: memoryStore(), namespace: 'shop', onWarning: () => undefined });
  const send = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: day('Europe/Paris'),
    identity: ['lead'],
    normalize: { lead: 'email' },
    volatile: ['traceId'],
    run: (_: { lead: string; body: string; traceId: string }) => 'sent',
  });
  const at = new Date('2026-06-19T22:30:00Z');
  const args = { lead: 'Ada@Example.com', body: 'hello', traceId: 't1' };
  const info = await semel.keyOf(send, args, { at });
  expect(info).toMatchObject({
    contract: 'mail.send',
    period: '2026-06-20',
    periodEndsAt: new Date('2026-06-20T22:00:00Z'),
    identity: { lead: expect.stringContaining('@example.com') },
    content: ['body'],
    volatile: ['traceId'],
  });
  expect(await semel.records.get(info.key)).toBeUndefined();
  const { receipt } = await send.try(args, { at });
  expect([receipt.key, receipt.id]).toEqual([info.key, info.id]);
  await semel.close();
});

test('a record can be annotated, and a ledger lists its namespaces', async () => {
  const store = memoryStore();
  const semel = createSemel({ store, namespace: 'shop', owner: 'worker seven', onWarning: () => undefined });
  await semel.once('mail.send', { lead: 7 }, () => 'sent');
  const [record] = (await semel.records.list()).items;
  expect(record?.owner).toBe('worker seven');
  await semel.records.annotate(record?.key ?? '', { seen: 'in the outbox' });
  expect(await semel.records.history(record?.id ?? '')).toMatchObject([
    { type: 'noted', detail: { seen: 'in the outbox' } },
  ]);
  expect(await semel.records.namespaces()).toEqual(['shop']);
  await semel.close();
});
