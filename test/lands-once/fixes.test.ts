// What landsOnce says about the other ways to be wrong, and what it accepts.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CallOptions, createSemel, landed, notLanded, type Semel, type ToolDefinition } from 'semel';
import { LandsOnceError, type LandsOnceOptions, type LandsOnceTable, landsOnce } from 'semel/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { mailServer } from './worlds.ts';

type Mail = { to: string; subject: string };
const mail: Mail = { to: 'ann@example.com', subject: 'Your order' };

const semelInMemory = () =>
  createSemel({ store: 'memory:', namespace: 'lands-once', onWarning: () => undefined });

/** A mail tool with one thing different about it. */
async function played(
  change: (mails: ReturnType<typeof mailServer>) => {
    contract?: Partial<ToolDefinition<Mail, unknown>>;
    args?: Mail | (() => Mail);
    options?: Partial<LandsOnceOptions<Mail>>;
  },
): Promise<{ table: LandsOnceTable; fixes: (string | undefined)[] }> {
  await using semel = semelInMemory();
  const mails = mailServer();
  const { contract, args = mail, options } = change(mails);
  const send = semel.tool<Mail, unknown>({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    run: (given: Mail) => mails.send(given),
    ...contract,
  } as ToolDefinition<Mail, unknown>);
  const table = await landsOnce(send, args, { effects: () => mails.sent.length, ...options }).catch(
    (error: unknown) => {
      if (error instanceof LandsOnceError) return error.table;
      throw error;
    },
  );
  const failed = table.rows.filter(({ status }) => status === 'failed');
  return { table, fixes: [...new Set(failed.map(({ fix }) => fix))] };
}

const statusOf = (table: LandsOnceTable, row: string) => table.rows.find(({ name }) => name === row)?.status;

describe('it says what to change', () => {
  test('an id that the schema generates for each call is not part of the intent', async () => {
    await using semel = semelInMemory();
    const mails = mailServer();
    const send = semel.tool({
      name: 'mail.send',
      effect: 'irreversible',
      per: 'ever',
      input: z.object({ to: z.string(), subject: z.string(), id: z.string().default(() => randomUUID()) }),
      run: (given) => mails.send(given),
    });
    await landsOnce(send, mail, { effects: () => mails.sent.length });
  });

  test('where each call has a key of its own', async () => {
    const { fixes } = await played(() => ({ options: { call: () => ({ key: randomUUID() }) } }));
    expect(fixes).toEqual([
      "the caller's `key` is another at each call although nothing changed: make it once per intent.",
    ]);
  });

  test('where the key is made of the wording', async () => {
    const { fixes } = await played(() => ({
      contract: { content: ['subject'] },
      options: {
        call: ({ subject }) => ({ key: subject }),
        reword: (given) => ({ ...given, subject: 'On its way' }),
      },
    }));
    expect(fixes).toEqual([
      "the caller's `key` changes with the wording: make it from what makes the intent.",
    ]);
  });

  test('where each attempt calls itself a turn', async () => {
    const call = (): CallOptions => ({ conversation: 'c-1', turn: randomUUID() });
    const { fixes } = await played(() => ({ contract: { per: 'turn' }, options: { call } }));
    expect(fixes).toEqual([
      '`turn` is another at each call although nothing changed: pass the one that all retries share.',
    ]);
  });

  test('one key for two intents', async () => {
    const { fixes } = await played(() => ({
      options: { call: { key: 'mail' }, otherArgs: { ...mail, to: 'bob@example.com' } },
    }));
    expect(fixes).toEqual([
      "the caller's `key` is the same for another intent: pass `call` as a function that makes it from the args.",
    ]);
  });

  test('if another intent counts as a repetition', async () => {
    const otherArgs = { ...mail, subject: 'Your invoice' };
    for (const other of [otherArgs, (args: typeof mail) => ({ ...args, subject: 'Your invoice' })]) {
      const listed = await played(() => ({ contract: { identity: ['to'] }, options: { otherArgs: other } }));
      expect(listed.fixes).toEqual(['`subject` differs but is not part of the key: name it in `identity`.']);
    }
    const unlisted = await played(() => ({ contract: { content: ['subject'] }, options: { otherArgs } }));
    expect(unlisted.fixes).toEqual([
      '`subject` differs but is not part of the key: take it out of `content` or `volatile`.',
    ]);
  });

  test('where `classify` takes any error for a refusal', async () => {
    const { table, fixes } = await played(() => ({ contract: { classify: () => 'notLanded' } }));
    expect(statusOf(table, 'throws after the effect')).toBe('failed');
    expect(fixes).toEqual([
      '`classify` takes an error that came after the effect for "not landed": say so only of a request that cannot have arrived.',
    ]);
  });

  test('where `verify` does not find what landed', async () => {
    const { table, fixes } = await played(() => ({ contract: { verify: () => notLanded() } }));
    expect(statusOf(table, 'killed after the effect, retried')).toBe('failed');
    expect(fixes).toEqual([
      '`verify` must find what `run` did, by `ctx.mark()` or by the args; where it cannot be sure, `return unsure()`.',
    ]);
  });

  test('where `verify` does not find it and is trusted at once', async () => {
    const { fixes } = await played(() => ({ contract: { verify: () => notLanded(), verifyAfter: 0 } }));
    expect(fixes).toEqual([
      // An attempt that threw is over at once; one that was killed may have sent until its timeout.
      expect.stringContaining('`verify` said "not landed" of an effect that had landed'),
      expect.stringContaining('`verify` must find what `run` did'),
    ]);
  });

  test('where `prepare` does the work', async () => {
    const { fixes } = await played((mails) => ({
      contract: { prepare: () => mails.send(mail) as never, run: (given) => mails.send(given) },
    }));
    expect(fixes).toEqual(['`prepare` changes the world: only `run` may.']);
  });

  test('where a contract gives the guarantee up', async () => {
    const { fixes } = await played(() => ({ contract: { onDoubt: 'rerun' } }));
    expect(fixes).toEqual([expect.stringContaining("`onDoubt: 'rerun'` accepts a second effect")]);
  });

  test('where nothing is stopped', async () => {
    const { fixes } = await played(() => ({ contract: { mode: 'observe' } }));
    expect(fixes).toEqual([expect.stringContaining("test the tool with `mode: 'enforce'`")]);
  });

  test('where a tool declared idempotent is not', async () => {
    const { fixes } = await played(() => ({ contract: { effect: 'write-idempotent' } }));
    expect(fixes).toEqual([expect.stringContaining("declare it 'write-non-idempotent'")]);
  });

  test('where `run` does not work at all, once and not for every row', async () => {
    const { table, fixes } = await played(() => ({
      contract: {
        run: () => {
          throw new Error('no such mailbox');
        },
      },
    }));
    expect(fixes).toEqual(['`run` must work with these args before it can be tested: no such mailbox']);
    expect(table.rows.filter(({ status }) => status === 'not tried')).toHaveLength(table.rows.length - 1);
  });

  test('where `effects` counts something else', async () => {
    const { fixes } = await played(() => ({ options: { effects: () => 7 } }));
    expect(fixes).toEqual(['let `effects` count what `run` of mail.send does.']);
  });

  test('where `reword` changes nothing', async () => {
    const { fixes } = await played(() => ({ options: { reword: (given) => ({ ...given }) } }));
    expect(fixes).toEqual(['let `reword` return the args with other content.']);
  });

  test('where the args cannot be used', async () => {
    const args = { ...mail, at: new Map() } as Mail;
    const { fixes } = await played(() => ({ args }));
    expect(fixes).toEqual([expect.stringContaining('args.at')]);
  });

  test('where it is given something else than a tool', async () => {
    const send = async (given: Mail) => given;
    await expect(landsOnce(send as never, mail, { effects: () => 0 })).rejects.toThrow(
      'what `semel.tool` returned',
    );
  });
});

describe('over HTTP', () => {
  /** Honours keys, and takes every request without one for a new one. */
  async function apiServer() {
    const seen = new Set<string>();
    let effects = 0;
    const server = createServer((request, response) => {
      const key = request.headers['idempotency-key'];
      if (key === undefined || !seen.has(String(key))) effects += 1;
      if (key !== undefined) seen.add(String(key));
      request.resume().on('end', () => response.end('{"ok":true}'));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mails`;
    return {
      url,
      effects: () => effects,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        server.close();
      },
    };
  }

  const define = (semel: Semel, url: string, hosts: string[]) =>
    semel.tool({
      name: 'mail.send',
      effect: 'irreversible',
      per: 'ever',
      provider: { name: 'postco', window: '60d', hosts },
      run: async (given: Mail, ctx) =>
        (await ctx.fetch(url, { method: 'POST', body: JSON.stringify(given) })).json(),
    });

  test('a lost reply is played by itself, and the key makes it harmless', async () => {
    await using api = await apiServer();
    await using semel = semelInMemory();
    const before = globalThis.fetch;
    const table = await landsOnce(define(semel, api.url, ['127.0.0.1']), mail, { effects: api.effects });
    expect(statusOf(table, 'reply lost inside run')).toBe('once');
    expect(globalThis.fetch).toBe(before);
  });

  test('a key that is kept from its host is found', async () => {
    await using api = await apiServer();
    await using semel = semelInMemory();
    await expect(
      landsOnce(define(semel, api.url, ['api.postco.example']), mail, { effects: api.effects }),
    ).rejects.toThrow(/127\.0\.0\.1:\d+ is not in the `hosts` of/);
  });

  const sendWithOwnKey = (send: typeof fetch, url: string, given: Mail) =>
    send(url, {
      method: 'POST',
      body: JSON.stringify(given),
      headers: { 'Idempotency-Key': crypto.randomUUID() },
    });

  test('a key that an SDK makes up is named as the cause of a doubt', async () => {
    await using api = await apiServer();
    await using semel = semelInMemory();
    const send = semel.tool({
      name: 'mail.send',
      effect: 'irreversible',
      per: 'ever',
      provider: { name: 'postco', window: '60d', hosts: ['127.0.0.1'] },
      run: async (given: Mail, ctx) => (await sendWithOwnKey(ctx.fetch, api.url, given)).json(),
    });
    const table = await landsOnce(send, mail, { effects: api.effects });
    for (const row of ['reply lost inside run', 'killed after the effect, retried'])
      expect(statusOf(table, row)).toBe('in doubt');
    expect(String(table)).toContain("in doubt: `run` sends a key that is not semel's");
  });

  test('and as the cause of a second effect, if `run` uses its own client', async () => {
    await using api = await apiServer();
    await using semel = semelInMemory();
    const send = semel.tool({
      name: 'mail.send',
      effect: 'irreversible',
      per: 'ever',
      provider: { name: 'postco', window: '60d', hosts: ['127.0.0.1'] },
      run: async (given: Mail) => (await sendWithOwnKey(fetch, api.url, given)).json(),
    });
    await expect(landsOnce(send, mail, { effects: api.effects })).rejects.toThrow(
      "`run` sends a key that is not semel's (its SDK makes one up)",
    );
  });

  test('a retry around fetch is found', async () => {
    await using api = await apiServer();
    await using semel = semelInMemory();
    const send = semel.tool({
      name: 'mail.send',
      effect: 'irreversible',
      per: 'ever',
      async run(given: Mail) {
        const request = () => fetch(api.url, { method: 'POST', body: JSON.stringify(given) });
        const response = await request().catch(request);
        return response.json();
      },
    });
    await expect(landsOnce(send, mail, { effects: api.effects })).rejects.toThrow(
      '`run` retries by itself (one run made 2 effects): let `retry` do it, with `ctx.key`.',
    );
  });
});

describe('it accepts', () => {
  test.each(['fail', 'skip'] as const)('a tool that does not wait: ifBusy %s', async (ifBusy) => {
    const { fixes } = await played(() => ({ contract: { ifBusy: ifBusy as 'wait' } }));
    expect(fixes).toEqual([]);
  });

  test('a tool of which only the reference is kept', async () => {
    const { fixes } = await played(() => ({ contract: { result: 'reference' } }));
    expect(fixes).toEqual([]);
  });

  test('a live value on replay', async () => {
    let asked = 0;
    const { fixes } = await played(() => ({ contract: { onReplay: () => ({ asked: ++asked }) } }));
    expect(fixes).toEqual([]);
  });

  test('a result of any kind that the ledger can keep', async () => {
    const { fixes } = await played((mails) => ({
      contract: {
        run: async (given) => ({
          ...(await mails.send(given)),
          at: new Date(),
          seen: new Set([1n]),
          none: undefined,
        }),
      },
    }));
    expect(fixes).toEqual([]);
  });

  test('a target that knows an intent by itself', async () => {
    const known = new Set<string>();
    const { table, fixes } = await played(() => ({
      contract: {
        run: ({ to }) => void known.add(to),
        verify: ({ to }) => (known.has(to) ? landed(undefined) : notLanded()),
      },
      options: { effects: () => known.size },
    }));
    expect(fixes).toEqual([]);
    expect(String(table)).toContain('landed once: the target had it already');
  });

  test('a fake that loses every first reply', async () => {
    const { table, fixes } = await played((mails) => ({
      contract: {
        run(given) {
          mails.loseReply();
          return mails.send(given);
        },
      },
    }));
    expect(fixes).toEqual([]);
    expect(statusOf(table, 'three in a row')).toBe('in doubt');
  });

  test('a write that sets a value', async () => {
    const values = new Map<string, string>();
    const { fixes } = await played(() => ({
      contract: { effect: 'write-idempotent', run: ({ to, subject }) => void values.set(to, subject) },
      options: { effects: () => values.size, otherArgs: { ...mail, to: 'bob@example.com' } },
    }));
    expect(fixes).toEqual([]);
  });

  test('every period, with an identity of its own', async () => {
    for (const per of ['turn', 'conversation', 'run', 'ever'] as const) {
      const { fixes } = await played(() => ({ contract: { per } }));
      expect(fixes, per).toEqual([]);
    }
  });

  test('timers that the test has faked', async () => {
    const { vi } = await import('vitest');
    vi.useFakeTimers();
    try {
      let sent = 0;
      const { fixes } = await played(() => ({
        contract: { run: () => ++sent },
        options: { effects: () => sent },
      }));
      expect(fixes).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });
});

test('with a persistent ledger, the next test does not count as a repetition', async () => {
  await using semel = semelInMemory();
  const mails = mailServer();
  const send = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    run: (given: Mail) => mails.send(given),
  });
  for (const _time of [1, 2]) await landsOnce(send, mail, { effects: () => mails.sent.length });
});
