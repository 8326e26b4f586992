// A record in doubt: who may decide it, with what, and what everybody is told meanwhile.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createSemel,
  landed,
  notLanded,
  type SemelError,
  unsure,
  type Verification,
  type VerifyContext,
} from 'semel';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { afterOutage, gate, type Rig, rest, rig } from './support.ts';

const minute = 60_000;
const hour = 60 * minute;

/** Throws after its effect as often as `fails` says. */
function mailer(fails = 1) {
  const sent: unknown[] = [];
  let left = fails;
  const send = (args: unknown) => {
    sent.push(args);
    if (left-- > 0) throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    return { id: `m-${sent.length}` };
  };
  return { sent, send };
}

interface Mail {
  to: string;
  body?: string;
}

const mail = { name: 'mail.send', effect: 'write-non-idempotent', per: 'ever', identity: ['to'] } as const;

async function errorOf(promise: Promise<unknown>): Promise<SemelError> {
  return promise.then(
    () => expect.fail('it should have been refused'),
    (error) => error as SemelError,
  );
}

async function theDoubt({ semel }: Rig) {
  const { items } = await semel.doubts.list();
  expect(items).toHaveLength(1);
  return items[0]!;
}

describe('what IN_DOUBT says', () => {
  test('the thrown error comes before everything else, then the command that resolves it, then the line that would have decided it', async () => {
    const { semel } = rig();
    const { send } = mailer();
    const tool = semel.tool({ ...mail, run: (args: Mail) => send(args) });
    const error = await errorOf(tool({ to: 'ann' }));
    const id = (await semel.doubts.list()).items[0]!.ref;
    expect(error.code).toBe('IN_DOUBT');
    expect(error.retriable).toBe(false);
    expect(error.message).toMatch(
      /^mail\.send: ECONNRESET: socket hang up\. It may have landed, so nothing was done again\. Check /,
    );
    // The command cannot reach a ledger in memory; those who can are told how.
    expect(error.correctiveAction).toContain(`semel.doubts.resolve('${id}', …)`);
    // The mail may be out although the connection was reset.
    expect(error.correctiveAction).not.toContain('classify');
    expect(error.correctiveAction).toMatch(/`verify`/);
    expect(error.evidence).toMatchObject({ attempts: 1, error: 'ECONNRESET: socket hang up' });
    expect((error.cause as Error).message).toBe('socket hang up');
  });

  test('a record whose holder died names itself in a way that resolve takes', async () => {
    const made = rig();
    const { semel, clock } = made;
    const tool = semel.tool({
      ...mail,
      lease: '10s',
      timeout: '1h',
      run: () => new Promise(() => undefined),
    });
    void tool.try({ to: 'ann' }).catch(() => undefined);
    await rest();
    clock.jump(11_000);
    const second = made.another().tool({ ...mail, lease: '10s', timeout: '1h', run: () => 'never' });
    const error = await errorOf(second({ to: 'ann' }));
    const ref = /resolve\('([^']+)'/.exec(error.message)![1]!;
    const resolved = await semel.doubts.resolve(ref, { landed: 'seen' });
    expect(resolved.status).toBe('succeeded');
    expect(await second({ to: 'ann' })).toBe('seen');
  });

  test('if the command can reach the ledger, the error names the command', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'semel-doubt-'));
    await using semel = createSemel({
      store: `sqlite:${folder}/l.db`,
      namespace: 'it’s',
      onWarning: () => undefined,
    });
    const tool = semel.tool({ ...mail, run: (args: Mail) => mailer().send(args) });
    const error = await errorOf(tool({ to: 'ann' }));
    const id = (await semel.doubts.list()).items[0]!.ref;
    expect(error.correctiveAction).toContain(
      `semel resolve ${id} landed/not-landed --namespace 'it’s' --store `,
    );
    expect(error.correctiveAction).toContain(`${folder}/l.db`);
    rmSync(folder, { recursive: true });
  });

  test('nothing is run while it is in doubt, however often it is called', async () => {
    const { semel } = rig();
    const { sent, send } = mailer();
    const tool = semel.tool({ ...mail, run: (args: Mail) => send(args) });
    for (let call = 0; call < 5; call += 1) expect((await tool.try({ to: 'ann' })).ok).toBe(false);
    expect(sent).toHaveLength(1);
  });
});

describe('a provider that honours the key', () => {
  const provider = { name: 'mailer', window: '48h', hosts: ['127.0.0.1'] } as const;

  test('inside its window the call runs again, with the first args and the same key, and the drift is noted', async () => {
    const { semel, clock } = rig();
    const { sent, send } = mailer();
    const keys: string[] = [];
    const tool = semel.tool({
      ...mail,
      provider,
      run: (args: Mail, ctx) => {
        keys.push(ctx.key);
        return send(args);
      },
    });
    const first = await errorOf(tool({ to: 'ann', body: 'first wording' }));
    expect(first.code).toBe('IN_DOUBT');
    expect(first.retriable).toBe(true);
    await clock.advance(20 * hour);
    const again = await tool.try({ to: 'ann', body: 'second wording' });
    expect(again).toMatchObject({
      ok: true,
      value: { id: 'm-2' },
      receipt: { executed: true, drift: ['body'], acceptedRepeat: false, attempt: 2 },
    });
    expect(sent).toEqual([
      { to: 'ann', body: 'first wording' },
      { to: 'ann', body: 'first wording' },
    ]);
    expect(keys[1]).toBe(keys[0]);
  });

  test('past its window the call is held', async () => {
    const { semel, clock } = rig();
    const { sent, send } = mailer();
    const tool = semel.tool({ ...mail, provider, run: (args: Mail, { key: _ }) => send(args) });
    await errorOf(tool({ to: 'ann' }));
    await clock.advance(48 * hour);
    const error = await errorOf(tool({ to: 'ann' }));
    expect(error.code).toBe('IN_DOUBT');
    expect(error.retriable).toBe(false);
    expect(sent).toHaveLength(1);
  });

  test('the window is counted from the first dispatch, not from the last', async () => {
    const { semel, clock } = rig();
    const { sent, send } = mailer(9);
    const tool = semel.tool({ ...mail, provider, run: (args: Mail, { key: _ }) => send(args) });
    await errorOf(tool({ to: 'ann' }));
    await clock.advance(30 * hour);
    await errorOf(tool({ to: 'ann' }));
    expect(sent).toHaveLength(2);
    await clock.advance(30 * hour);
    await errorOf(tool({ to: 'ann' }));
    expect(sent).toHaveLength(2);
  });

  test('past its window `verify` is asked', async () => {
    const { semel, clock } = rig();
    const { sent, send } = mailer();
    const tool = semel.tool({
      ...mail,
      provider,
      run: (args: Mail) => send(args),
      verify: afterOutage(() => landed({ id: 'found' })),
    });
    await errorOf(tool({ to: 'ann' }));
    await clock.advance(48 * hour);
    expect(await tool({ to: 'ann' })).toEqual({ id: 'found' });
    expect(sent).toHaveLength(1);
  });

  test('args that may not be stored make a re-run impossible', async () => {
    const { semel } = rig();
    const { sent, send } = mailer();
    const tool = semel.tool({ ...mail, provider, redact: ['body'], run: (args: Mail) => send(args) });
    await errorOf(tool({ to: 'ann', body: 'secret' }));
    expect((await errorOf(tool({ to: 'ann', body: 'secret' }))).code).toBe('IN_DOUBT');
    expect(sent).toHaveLength(1);
    const record = (await semel.doubts.list()).items[0]!;
    expect(record.args).toEqual({ to: 'ann' });
  });

  test('another major version of the tool does not repeat what the first one sent', async () => {
    const made = rig();
    const { send, sent } = mailer();
    const v1 = made.semel.tool({ ...mail, provider, version: '1.4', run: (args: Mail) => send(args) });
    await errorOf(v1({ to: 'ann' }));
    const v2 = made.another().tool({ ...mail, provider, version: '2.0', run: (args: Mail) => send(args) });
    expect((await errorOf(v2({ to: 'ann' }))).code).toBe('IN_DOUBT');
    expect(sent).toHaveLength(1);
  });
});

describe('another major version of the tool', () => {
  interface First {
    readonly payment: string;
    readonly cents: number;
  }
  interface Second {
    readonly payment: string;
    readonly amount: number;
  }
  const refund = {
    name: 'refund',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['payment'],
  } as const;

  async function inDoubtByTheFirst(answer: () => Verification<string>) {
    const made = rig();
    const lost = (): string => {
      throw new Error('socket hang up');
    };
    const first = made.semel.tool({ ...refund, version: '1.4', run: (_: First) => lost() });
    await errorOf(first({ payment: 'p-1', cents: 100 }));
    await made.clock.advance(61_000);
    const runs: Second[] = [];
    const asked: Second[] = [];
    const semel = made.another();
    const second = semel.tool({
      ...refund,
      version: '2.0',
      run: (args: Second) => `refunded ${runs.push(args)}`,
      verify: (args) => {
        asked.push(args);
        return answer();
      },
    });
    return { semel, second, runs, asked };
  }

  test('is not given the args of the first one by a sweep, which it may misread', async () => {
    const { semel, runs, asked } = await inDoubtByTheFirst(() => notLanded());
    expect(await semel.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 1 });
    expect([runs, asked]).toEqual([[], []]);
  });

  test("cannot tell that the first one's request did not land, and is asked about its own args", async () => {
    const { second, runs, asked } = await inDoubtByTheFirst(() => notLanded());
    const { error } = (await second.try({ payment: 'p-1', amount: 1 })) as { error: SemelError };
    expect(error).toMatchObject({ code: 'IN_DOUBT' });
    expect([runs, asked]).toEqual([[], [{ payment: 'p-1', amount: 1 }]]);
  });

  test('can tell that it landed', async () => {
    const { second, runs } = await inDoubtByTheFirst(() => landed('found'));
    expect(await second({ payment: 'p-1', amount: 1 })).toBe('found');
    expect(runs).toEqual([]);
  });

  test('sends what it prepares itself, once a person said that it did not land', async () => {
    const made = rig();
    const sent: unknown[] = [];
    const base = { ...mail, effect: 'irreversible' } as const;
    const first = made.semel.tool({
      ...base,
      version: '1',
      prepare: () => ({ text: 'Hi' }),
      run: () => {
        throw new Error('socket hang up');
      },
    });
    await errorOf(first({ to: 'ann' }));
    await made.clock.advance(61_000);
    const other = made.another();
    const second = other.tool({
      ...base,
      version: '2',
      prepare: () => ({ html: '<p>Hi</p>' }),
      run: (_: Mail, { prepared }) => `sent ${sent.push(prepared)}`,
    });
    const [record] = (await other.doubts.list()).items;
    await other.doubts.resolve(record!.ref, 'notLanded', { by: 'ann' });
    expect(await second({ to: 'ann' })).toBe('sent 1');
    expect(sent).toEqual([{ html: '<p>Hi</p>' }]);
  });
});

describe('verify', () => {
  test('"landed" settles with its value and its reference, and says that nothing was executed', async () => {
    const { semel } = rig();
    const { sent, send } = mailer();
    const tool = semel.tool({
      ...mail,
      run: (args: Mail) => send(args),
      verify: afterOutage(() => landed({ id: 'found' }, 'msg_77')),
    });
    await errorOf(tool({ to: 'ann' }));
    const found = await tool.try({ to: 'ann' });
    expect(found).toMatchObject({
      ok: true,
      value: { id: 'found' },
      receipt: { executed: false, replayed: true, remoteRef: 'msg_77' },
    });
    expect(sent).toHaveLength(1);
    expect(await tool({ to: 'ann' })).toEqual({ id: 'found' });
  });

  test('"not landed" is not trusted while a request may be on its way; later it executes', async () => {
    const { semel, clock } = rig();
    const { sent, send } = mailer();
    const tool = semel.tool({
      ...mail,
      timeout: '2m',
      run: (args: Mail) => send(args),
      verify: () => notLanded(),
    });
    await errorOf(tool({ to: 'ann' }));
    const early = await errorOf(tool({ to: 'ann' }));
    expect(early).toMatchObject({ code: 'IN_DOUBT', retriable: true });
    expect(early.retryAfterMs).toBeGreaterThan(50_000);
    expect(early.retryAfterMs).toBeLessThanOrEqual(minute);
    expect(sent).toHaveLength(1);
    await clock.advance(early.retryAfterMs!);
    const second = await tool.try({ to: 'ann' });
    expect(second).toMatchObject({
      ok: true,
      value: { id: 'm-2' },
      receipt: { executed: true, acceptedRepeat: false },
    });
    expect(sent).toHaveLength(2);
  });

  test.each([
    [
      '"unsure" says why',
      () => unsure('the API lists nothing older than a minute'),
      /the API lists nothing older/,
    ],
    [
      'a throw decides nothing',
      () => {
        throw new Error('502 from the search');
      },
      /502 from the search/,
    ],
    ['no answer decides nothing', () => undefined as never, /`verify` could not tell:/],
    ['`true` decides nothing', () => true as never, /landed\(\), notLanded\(\) or unsure\(\)/],
    ['`false` decides nothing', () => false as never, /landed\(\), notLanded\(\) or unsure\(\)/],
    ['a word decides nothing', () => 'notLanded' as never, /landed\(\), notLanded\(\) or unsure\(\)/],
  ])('%s, and the record stays in doubt', async (_title, verify, message) => {
    const made = rig();
    const { semel, clock } = made;
    const { sent, send } = mailer();
    const tool = semel.tool({ ...mail, run: (args: Mail) => send(args), verify });
    await errorOf(tool({ to: 'ann' }));
    await clock.advance(hour);
    const error = await errorOf(tool({ to: 'ann' }));
    expect(error.code).toBe('IN_DOUBT');
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/ECONNRESET/);
    expect(sent).toHaveLength(1);
    expect((await theDoubt(made)).inDoubt).toBe(true);
  });

  test('it is asked about what was sent, not about the wording of the later call', async () => {
    const { semel, clock } = rig();
    const { send } = mailer();
    const asked: unknown[] = [];
    const tool = semel.tool({
      ...mail,
      run: (args: Mail) => send(args),
      verify: afterOutage((args: Mail, ctx: VerifyContext) => {
        asked.push(args.body, ctx.attempts, ctx.lastDispatchedAt instanceof Date, ctx.key.length);
        return landed({ id: 'found' });
      }),
    });
    await errorOf(tool({ to: 'ann', body: 'first wording' }));
    await clock.advance(hour);
    await tool({ to: 'ann', body: 'second wording' });
    expect(asked).toEqual(['first wording', 2, true, 36]);
  });

  test('two callers at once ask once', async () => {
    const made = rig();
    const { semel, clock } = made;
    const { send } = mailer();
    let asked = 0;
    const definition = {
      ...mail,
      run: (args: Mail) => send(args),
      verify: afterOutage(async () => {
        asked += 1;
        await rest();
        return landed({ id: 'found' });
      }),
    };
    const here = semel.tool(definition);
    const there = made.another().tool(definition);
    await errorOf(here({ to: 'ann' }));
    await clock.advance(hour);
    const both = Promise.all([here({ to: 'ann' }), there({ to: 'ann' }), here({ to: 'ann' })]);
    expect(await clock.until(both)).toEqual([{ id: 'found' }, { id: 'found' }, { id: 'found' }]);
    expect(asked).toBe(1);
  });
});

test("`onDoubt: 'rerun'` runs it again and names that in the receipt", async () => {
  const { semel } = rig({ onDoubt: 'rerun' });
  const { sent, send } = mailer();
  const tool = semel.tool({ ...mail, run: (args: Mail) => send(args) });
  await errorOf(tool({ to: 'ann' }));
  const again = await tool.try({ to: 'ann' });
  expect(again).toMatchObject({ ok: true, receipt: { executed: true, acceptedRepeat: true } });
  expect(sent).toHaveLength(2);
});

test('an attempt that lands beside its accepted repetition reports itself, not the attempt that holds the key', async () => {
  const { clock, another } = rig({ onDoubt: 'rerun' });
  const first = gate<string>();
  const second = gate<string>();
  const sleeping = (wake: typeof first) =>
    another()
      .tool({ ...mail, run: () => wake.promise })
      .try({ to: 'ann' });
  const one = sleeping(first);
  await rest();
  clock.jump(hour);
  const two = sleeping(second);
  await rest();
  first.resolve('from the first');
  expect(await one).toMatchObject({
    value: 'from the first',
    receipt: { executed: true, fence: 1, attempt: 1 },
  });
  second.resolve('from the second');
  expect(await two).toMatchObject({ value: 'from the second', receipt: { executed: true, fence: 2 } });
  const again = await another()
    .tool({ ...mail, run: () => 'again' })
    .try({ to: 'ann' });
  expect(again).toMatchObject({ value: 'from the second', receipt: { replayed: true, fence: 2 } });
});

describe('resolve', () => {
  async function inDoubt() {
    const made = rig();
    const { sent, send } = mailer();
    const tool = made.semel.tool({ ...mail, run: (args: Mail) => send(args) });
    await errorOf(tool({ to: 'ann' }));
    return { ...made, made, tool, sent, ref: (await theDoubt(made)).ref };
  }

  test('landed: the value is replayed', async () => {
    const { semel, tool, sent, ref } = await inDoubt();
    const info = await semel.doubts.resolve(ref, { landed: { id: 'x' }, remoteRef: 'r-1' }, { by: 'ann' });
    expect(info).toMatchObject({ status: 'succeeded', value: { id: 'x' }, remoteRef: 'r-1', doubt: false });
    expect(await tool({ to: 'ann' })).toEqual({ id: 'x' });
    expect(sent).toHaveLength(1);
  });

  test('not landed: too early without force, then it runs again and nothing is in doubt', async () => {
    const { semel, clock, tool, sent, ref } = await inDoubt();
    const early = await errorOf(semel.doubts.resolve(ref, 'notLanded'));
    expect(early.code).toBe('RESOLVE_STALE');
    expect(early.message).toMatch(/may still land.*force/);
    expect(early.retryAfterMs).toBeGreaterThan(0);
    await clock.advance(early.retryAfterMs!);
    expect(await semel.doubts.resolve(ref, 'notLanded')).toMatchObject({ status: 'released', doubt: false });
    const second = await tool.try({ to: 'ann' });
    expect(second).toMatchObject({ ok: true, receipt: { acceptedRepeat: false } });
    expect(sent).toHaveLength(2);
  });

  test('not landed with force: trusted at once', async () => {
    const { semel, ref } = await inDoubt();
    expect(await semel.doubts.resolve(ref, 'notLanded', { force: true })).toMatchObject({
      status: 'released',
    });
  });

  test('run again: accepts a second effect, keeps the doubt, and the receipt says so', async () => {
    const { semel, tool, sent, ref } = await inDoubt();
    expect(await semel.doubts.resolve(ref, 'runAgain')).toMatchObject({ status: 'released', doubt: true });
    const second = await tool.try({ to: 'ann' });
    expect(second).toMatchObject({ ok: true, receipt: { executed: true, acceptedRepeat: true } });
    expect(sent).toHaveLength(2);
  });

  test('abandon: never reported as refused; reopened, it is in doubt again', async () => {
    const { semel, tool, sent, ref } = await inDoubt();
    await semel.doubts.resolve(ref, { abandon: 'customer left' });
    const error = await errorOf(tool({ to: 'ann' }));
    expect(error.code).toBe('FAILED');
    expect(error.message).toMatch(/Given up, may have landed: customer left/);
    expect(error.message).not.toMatch(/refused it/);
    const reopened = await semel.records.reopen(ref.split('@')[0]!);
    expect(reopened.inDoubt).toBe(true);
    expect(sent).toHaveLength(1);
  });

  test('a stale reference is refused, and the error shows the current one', async () => {
    const { semel, ref } = await inDoubt();
    await semel.doubts.resolve(ref, { landed: 1 });
    const error = await errorOf(semel.doubts.resolve(ref, 'runAgain'));
    expect(error).toMatchObject({ code: 'RESOLVE_STALE', evidence: { status: 'succeeded' } });
    expect(error.message).toMatch(/has been settled since it was looked at/);
  });

  test('a reference of a record that is still open is refused with the one that it has now', async () => {
    const { semel, ref } = await inDoubt();
    const error = await errorOf(semel.doubts.resolve(`${ref.split('@')[0]}@7`, 'runAgain'));
    expect(error.message).toMatch(`has changed since it was looked at. It is ${ref} now`);
  });

  test.each(['', 'nobody', 'nobody@1', '@1'])('%j is refused as a reference', async (ref) => {
    const { semel } = await inDoubt();
    const error = await errorOf(semel.doubts.resolve(ref, 'runAgain'));
    expect(error.code).toBe('INVALID_ARGS');
  });

  test('a reference without its fence is refused, with the one to write', async () => {
    const { semel, ref } = await inDoubt();
    const error = await errorOf(semel.doubts.resolve(ref.split('@')[0]!, { landed: 1 }));
    expect(error.code).toBe('INVALID_ARGS');
    expect(error.message).toContain(ref);
  });

  test('an unknown decision is refused', async () => {
    const { semel, ref } = await inDoubt();
    for (const wrong of ['not-landed', {}, undefined, null]) {
      const error = await errorOf(semel.doubts.resolve(ref, wrong as never));
      expect(error.code).toBe('INVALID_ARGS');
    }
    expect((await semel.doubts.list()).items).toHaveLength(1);
  });

  test('what is running needs force, which fences its holder', async () => {
    const made = rig();
    const { semel } = made;
    let end: (value: string) => void = () => undefined;
    const tool = semel.tool({
      ...mail,
      run: () =>
        new Promise<string>((resolve) => {
          end = resolve;
        }),
    });
    const running = tool.try({ to: 'ann' });
    await rest();
    const record = (await semel.records.list()).items[0]!;
    const refused = await errorOf(semel.doubts.resolve(record.ref, 'runAgain'));
    expect(refused.message).toMatch(/being executed right now.*force/s);
    await semel.doubts.resolve(record.ref, { landed: 'by hand' }, { force: true });
    end('by itself');
    expect(await running).toMatchObject({ ok: true, value: 'by hand' });
  });

  test('every decision is in the history, with who made it and why', async () => {
    const { semel, ref } = await inDoubt();
    await semel.doubts.resolve(ref, { landed: 1 }, { by: 'ann', note: 'seen in the outbox' });
    const history = await semel.records.history(ref.split('@')[0]!);
    expect(history.find(({ type }) => type === 'resolved')?.detail).toMatchObject({
      act: 'landed',
      by: 'ann',
      note: 'seen in the outbox',
    });
  });
});

test('doubts are grouped by contract and error, largest first, each record with its own reference', async () => {
  const { semel } = rig();
  const { send } = mailer(99);
  const tool = semel.tool({ ...mail, run: (args: Mail) => send(args) });
  const other = semel.tool({
    ...mail,
    name: 'sms.send',
    run: () => {
      throw new Error('no credit');
    },
  });
  for (const to of ['a', 'b', 'c']) await tool.try({ to });
  await other.try({ to: 'a' });
  const groups = await semel.doubts.groups();
  expect(groups.map(({ contract, error, refs }) => [contract, error, refs.length])).toEqual([
    ['mail.send', 'ECONNRESET: socket hang up', 3],
    ['sms.send', 'no credit', 1],
  ]);
  for (const ref of groups[0]!.refs) await semel.doubts.resolve(ref, { landed: null });
  expect((await semel.doubts.list()).items).toHaveLength(1);
});

describe('sweep', () => {
  test('asks `verify` about doubts that were never called again, and executes what did not land', async () => {
    const { semel, clock } = rig();
    const { sent, send } = mailer(2);
    const tool = semel.tool({
      ...mail,
      run: (args: Mail) => send(args),
      verify: afterOutage(({ to }: Mail) => (to === 'ann' ? landed({ id: 'found' }) : notLanded())),
    });
    await tool.try({ to: 'ann' });
    await tool.try({ to: 'bob' });
    await clock.advance(hour);
    expect(await semel.doubts.sweep()).toEqual({ landed: 2, notLanded: 0, open: 0 });
    expect(sent).toEqual([{ to: 'ann' }, { to: 'bob' }, { to: 'bob' }]);
  });

  test('of a record that is gone does not answer a new call', async () => {
    const { semel, store, another } = rig();
    const { sent, send } = mailer(1);
    const tool = semel.tool({
      ...mail,
      run: (args: Mail) => send(args),
      verify: afterOutage(() => landed({ id: 'found' })),
    });
    const { receipt } = await tool.try({ to: 'ann' });
    const sweeping = gate<void>();
    const anew = sweeping.promise.then(() => tool.try({ to: 'ann' }));
    store.after = async (method) => {
      if (method !== 'list') return;
      store.after = undefined;
      const operator = another();
      await operator.doubts.resolve(`${receipt.id}@${receipt.fence}`, { landed: { id: 'seen' } });
      const [record] = (await operator.records.list()).items;
      await operator.records.forget(record?.key ?? '');
      store.before = async () => {
        store.before = undefined;
        sweeping.resolve();
        await rest();
      };
    };
    await semel.doubts.sweep();
    expect(await anew).toMatchObject({ ok: true });
    expect(sent).toHaveLength(2);
  });

  test.each([
    ['nobody', {}],
    ['an operator', { conversation: 'ops', turn: '9', run: 'nightly', caller: 'ops' }],
  ])('runs it in the name of its first asker, where the sweeper is %s', async (_name, sweeper) => {
    const { semel, clock } = rig();
    const { sent, send } = mailer(1);
    const posted: string[] = [];
    const inner = (['turn', 'conversation', 'run'] as const).map((per) =>
      semel.tool({ ...mail, name: `post.${per}`, per, run: () => posted.push(per) }),
    );
    const tool = semel.tool({
      ...mail,
      run: async (args: Mail) => {
        for (const post of inner) await post({ to: args.to });
        return send(args);
      },
      verify: () => notLanded(),
    });
    const first = { conversation: 'c', turn: '1', run: 'r', caller: 'ann' };
    await semel.within(first, () => tool.try({ to: 'ann' }));
    await clock.advance(hour);
    const swept = await semel.within(sweeper, () => semel.doubts.sweep());
    expect(swept).toEqual({ landed: 1, notLanded: 0, open: 0 });
    expect(sent).toHaveLength(2);
    expect(posted).toEqual(['turn', 'conversation', 'run']);
  });

  test('does not run what somebody settled since it was listed, and whose window has ended', async () => {
    const made = rig({ prune: false });
    const { sent, send } = mailer(2);
    const definition = { ...mail, per: 'turn', window: '5m', verifyAfter: '0s', timeout: '30s' } as const;
    const tool = made.semel.tool({ ...definition, run: (args: Mail) => send(args) });
    for (const to of ['ann', 'bob']) await tool.try({ to }, { conversation: 'c', turn: '1' });
    const sweeper = made.another();
    let isFirst = true;
    sweeper.tool({
      ...definition,
      run: (args: Mail) => send(args),
      verify: async ({ to }) => {
        if (isFirst) {
          isFirst = false;
          const { items } = await made.semel.doubts.list();
          const other = items.find(({ args }) => (args as Mail).to !== to);
          await made.semel.doubts.resolve(other!.ref, 'landed');
          made.clock.jump(6 * 60_000);
        }
        return landed({ id: 'found' });
      },
    });
    expect(await sweeper.doubts.sweep()).toEqual({ landed: 2, notLanded: 0, open: 0 });
    expect(sent).toHaveLength(2);
  });

  test('does not run stored args that a changed schema refuses, and only asks about them', async () => {
    const made = rig();
    const { sent, send } = mailer(3);
    const keyed = { ...mail, provider: { name: 'mailer', window: '48h' } } as const;
    const old = made.semel.tool({
      ...keyed,
      input: z.object({ to: z.string() }),
      run: (args, { key: _ }) => send(args),
    });
    for (const to of ['ann', 'bob', 'cat@x.de']) await old.try({ to });
    const later = made.another();
    later.tool({
      ...keyed,
      input: z.object({ to: z.email() }),
      run: (args, { key: _ }) => send(args),
      verify: ({ to }) => (to === 'ann' ? landed({ id: 'found' }) : unsure('no list')),
    });
    await made.clock.advance(60_000);
    expect(await later.doubts.sweep()).toEqual({ landed: 2, notLanded: 0, open: 1 });
    expect(sent.map((each) => (each as Mail).to)).toEqual(['ann', 'bob', 'cat@x.de', 'cat@x.de']);
    expect(made.warnings.filter((each) => each.includes('do not fit'))).toHaveLength(1);
  });

  test('without `execute` it only asks', async () => {
    const { semel, clock } = rig();
    const { sent, send } = mailer(2);
    const tool = semel.tool({
      ...mail,
      provider: { name: 'mailer', window: '48h' },
      run: (args: Mail, { key: _ }) => send(args),
      verify: afterOutage(({ to }: Mail) => (to === 'ann' ? landed({ id: 'found' }) : notLanded())),
    });
    await tool.try({ to: 'ann' });
    await tool.try({ to: 'bob' });
    await clock.advance(hour);
    expect(await semel.doubts.sweep({ execute: false })).toEqual({ landed: 1, notLanded: 1, open: 0 });
    expect(sent).toHaveLength(2);
    expect((await semel.records.list()).items.map(({ status }) => status).sort()).toEqual([
      'released',
      'succeeded',
    ]);
  });

  test('leaves open what no tool of this process can decide, and says how many', async () => {
    const { semel } = rig();
    const { sent, send } = mailer(2);
    const tool = semel.tool({ ...mail, run: (args: Mail) => send(args) });
    await tool.try({ to: 'ann' });
    await semel.once('sms.send', 1, () => send(0)).catch(() => undefined);
    expect(await semel.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 2 });
    expect(sent).toHaveLength(2);
  });

  test('never runs a one-liner: its effect was a closure of another call', async () => {
    const { semel } = rig({ onDoubt: 'rerun' });
    const ran: string[] = [];
    for (const lead of ['ann', 'bob']) {
      await semel
        .once('mail.send', { lead }, () => {
          ran.push(lead);
          if (lead === 'ann') throw new Error('reset');
        })
        .catch(() => undefined);
    }
    expect(await semel.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 1 });
    expect(ran).toEqual(['ann', 'bob']);
  });

  test('runs nothing in observe mode', async () => {
    const made = rig();
    const { send, sent } = mailer();
    await made.semel.tool({ ...mail, run: (args: Mail) => send(args) }).try({ to: 'ann' });
    const observing = made.another({ mode: 'observe' });
    observing.tool({ ...mail, run: (args: Mail) => send(args) });
    expect(await observing.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 1 });
    expect(sent).toHaveLength(1);
  });

  test('finds the tool of a record that was made under its earlier name', async () => {
    const made = rig();
    const { send } = mailer();
    await made.semel.tool({ ...mail, run: (args: Mail) => send(args) }).try({ to: 'ann' });
    const renamed = made.another();
    renamed.tool({
      ...mail,
      name: 'mail.deliver',
      was: [{ name: 'mail.send' }],
      run: (args: Mail) => send(args),
      verify: () => landed({ id: 'found' }),
    });
    expect(await renamed.doubts.sweep()).toEqual({ landed: 1, notLanded: 0, open: 0 });
  });
});

test('a call that crashed before dispatch is listed with the doubts, as abandoned', async () => {
  const made = rig();
  const { semel, clock } = made;
  const tool = semel.tool({
    ...mail,
    dispatch: 'explicit',
    lease: '10s',
    timeout: '1h',
    run: () => new Promise(() => undefined),
  });
  void tool.try({ to: 'ann' });
  await rest();
  clock.jump(11_000);
  const { items } = await made.another().doubts.list();
  expect(items).toMatchObject([{ status: 'running', lapsed: true, abandoned: true, inDoubt: false }]);
});

test('a memory store can be opened by any semel that has it', async () => {
  const made = rig();
  const { send } = mailer();
  await made.semel.tool({ ...mail, run: (args: Mail) => send(args) }).try({ to: 'ann' });
  const operator = createSemel({ store: made.store, namespace: 'test', onWarning: () => undefined });
  const { items } = await operator.doubts.list({ contract: 'mail.send', limit: 1 });
  expect(items).toHaveLength(1);
});

test("the provider's id that was noted before the throw reaches verify and people", async () => {
  const { semel } = rig();
  const seen: (string | undefined)[] = [];
  const tool = semel.tool({
    ...mail,
    run: (_: Mail, ctx): string => {
      ctx.note('msg_1');
      throw new Error('socket hang up');
    },
    verify: (_, { remoteRef }) => {
      seen.push(remoteRef);
      return unsure();
    },
  });
  const error = await errorOf(tool({ to: 'ann' }));
  expect(error.evidence).toMatchObject({ remoteRef: 'msg_1' });
  await errorOf(tool({ to: 'ann' }));
  expect(seen).toEqual(['msg_1', 'msg_1']);
  expect((await semel.doubts.list()).items[0]?.remoteRef).toBe('msg_1');
});

test('a deliberate repetition says why, in its record too', async () => {
  const { semel } = rig();
  const tool = semel.tool({ ...mail, run: (_: Mail) => 'sent' });
  await tool({ to: 'ann' });
  await tool({ to: 'ann' }, { again: 'she asked for it once more' });
  const { items } = await semel.records.list();
  expect(items.map(({ again }) => again).sort()).toEqual(['she asked for it once more', undefined]);
});

test('after a person let it run again, `verify` still looks as far back as the first attempt', async () => {
  const made = rig();
  const sentAt = new Date(made.clock.now());
  const lookedBackTo: (Date | undefined)[] = [];
  const tool = made.semel.tool({
    ...mail,
    run: (args: Mail) => mailer().send(args),
    verify: (_, { firstDispatchedAt }) => {
      lookedBackTo.push(firstDispatchedAt);
      return unsure('the service is down');
    },
  });
  await errorOf(tool({ to: 'ann' }));
  await made.clock.advance(hour);
  await made.semel.doubts.resolve((await theDoubt(made)).ref, 'runAgain');
  await errorOf(tool({ to: 'ann' }));
  await errorOf(tool({ to: 'ann' }));
  expect(lookedBackTo).toEqual([sentAt, sentAt, sentAt]);
});

test('"not landed" counts as of when the target was looked at, and never later than now', async () => {
  const made = rig();
  const tool = made.semel.tool({ ...mail, run: (args: Mail) => mailer().send(args) });
  await errorOf(tool({ to: 'ann' }));
  const { ref } = await theDoubt(made);
  const looked = (at: number) => made.semel.doubts.resolve(ref, 'notLanded', { lookedAt: new Date(at) });
  const early = made.clock.now() + 30_000;
  expect((await errorOf(looked(early + hour))).code).toBe('RESOLVE_STALE');
  expect(await errorOf(looked(Number.NaN))).toMatchObject({ code: 'INVALID_ARGS', path: 'lookedAt' });
  await made.clock.advance(hour);
  expect((await errorOf(looked(early))).code).toBe('RESOLVE_STALE');
  expect(await looked(early + minute)).toMatchObject({ status: 'released', doubt: false });
});

test('"not landed" counts as of when it was said, although the machine slept before the ledger heard it', async () => {
  const made = rig();
  const tool = made.semel.tool({ ...mail, run: (args: Mail) => mailer().send(args) });
  await errorOf(tool({ to: 'ann' }));
  const { ref } = await theDoubt(made);
  let asleepMs = 0;
  const laptop = made.another({ clock: { ...made.clock, mono: () => made.clock.mono() - asleepMs } });
  made.store.before = () => {
    made.store.before = undefined;
    asleepMs = hour;
    made.clock.jump(asleepMs);
  };
  expect((await errorOf(laptop.doubts.resolve(ref, 'notLanded'))).code).toBe('RESOLVE_STALE');
  expect(await laptop.doubts.resolve(ref, 'notLanded')).toMatchObject({ status: 'released', doubt: false });
});
