// The proxy between a client and a server by hand: what passes, what is held, what is recorded.

import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { atTheEnd, eventually } from '../cli/place.ts';
import { errorOf, isKept, proxyPlace } from './proxy.ts';
import { rawClient } from './raw-client.ts';

const lineOf = (id: number, name: string, args: object, more: object = {}) =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args, ...more } })}\n`;

test('a grace period beyond any timer is refused, not treated as none', async () => {
  const said = await proxyPlace().semel('mcp', '--grace', '60d', '--', 'true');
  expect(said).toMatchObject({ code: 64, stderr: expect.stringContaining('--grace must be at most 24d') });
});

describe('a tool without hints', () => {
  test('lands once for the same args: in this proxy, after a restart, for another client', async () => {
    const here = proxyPlace();
    const first = here.client();
    const one = await first.call('act', { to: 'ann' });
    const two = await first.call('act', { to: 'ann' });
    expect(one.result?.content).toEqual([{ type: 'text', text: 'done 1' }]);
    expect(isKept(one)).toBe(false);
    expect(isKept(two)).toBe(true);
    expect(two.result?.structuredContent).toEqual(one.result?.structuredContent);
    expect(two.result?.content?.at(-1)?.text).toBe('done 1');
    first.leave();
    expect((await first.ended).code).toBe(0);

    const [second, third] = [here.client(), here.client()];
    for (const client of [second, third]) expect(isKept(await client.call('act', { to: 'ann' }))).toBe(true);
    expect(isKept(await second.call('act', { to: 'bob' }))).toBe(false);
    expect(here.effects()).toEqual(['{"to":"ann"}', '{"to":"bob"}']);
  });

  test('is shared by calls at the same time, also of two proxies', async () => {
    const here = proxyPlace();
    const [one, two] = [here.client(), here.client()];
    const calls = [one, one, two, two].map((client) => client.call('act-then-wait', { n: 1 }));
    await eventually(() => here.effects().length > 0);
    here.open();
    const answers = await Promise.all(calls);
    expect(answers.filter(({ result }) => result?.isError !== true).length).toBeGreaterThanOrEqual(2);
    expect(answers.filter(isKept).length).toBeGreaterThanOrEqual(2);
    expect(here.effects()).toHaveLength(1);
  });

  test('a tool that says it only reads passes; one that says it is idempotent always runs', async () => {
    const here = proxyPlace();
    const client = here.client();
    for (const _ of [1, 2]) expect(isKept(await client.call('peek', {}))).toBe(false);
    // What only reads needs no ledger either.
    expect(existsSync(here.path('ledger.db'))).toBe(false);
    for (const _ of [1, 2]) expect(isKept(await client.call('put', {}))).toBe(false);
    expect(here.effects()).toHaveLength(4);
  });

  test('a tool that says it is idempotent runs also where the ledger cannot be used', async () => {
    const here = proxyPlace();
    const client = here.client(['--store', `sqlite:${here.file('no-folder', '')}/ledger.db`]);
    expect((await client.call('put', {})).result?.content?.[0]?.text).toBe('put');
    expect(errorOf(await client.call('act', {}))?.code).toMatch(/^STORE_/);
  });

  test("a server is not shown semel's own secrets, unless one is passed by name", async () => {
    const secrets = {
      SEMEL_TOKEN: 's-bearer',
      SEMEL_WEBHOOK_SECRET: 's-webhook',
      SEMEL_MCP_TOKEN: 's-token',
      SEMEL_MCP_AUTHORIZATION: 's-authorization',
      SEMEL_HANDOFF_KEY: 's-handoff-key-of-32-characters-at-least',
      SEMEL_OPERATOR: 's-operator',
      PGPASSWORD: 's-postgres',
      AWS_ACCESS_KEY_ID: 's-id',
      AWS_SECRET_ACCESS_KEY: 's-aws',
      AWS_SESSION_TOKEN: 's-session',
      ITS_OWN: 'yes',
    };
    const here = proxyPlace(secrets);
    const file = here.file('env.mjs', 'console.log(JSON.stringify({ id: 1, result: process.env }));');
    const shown = async (...options: string[]) => {
      const client = rawClient(here.command(options, [process.execPath, file]), here.env);
      atTheEnd(() => void client.child.kill('SIGKILL'));
      return (await client.answer(1)).result as Record<string, string>;
    };
    const plain = await shown();
    // The ledger is in SQLite here, so that these can only be the server's.
    expect(plain).toMatchObject({ ITS_OWN: 'yes', PGPASSWORD: 's-postgres', AWS_SECRET_ACCESS_KEY: 's-aws' });
    // Every variable of semel's that is there is one that says how to run, and opens nothing.
    const harmless = ['SEMEL_AGENT', 'SEMEL_NAMESPACE'];
    const own = Object.keys(plain).filter((name) => name.startsWith('SEMEL_') && !harmless.includes(name));
    expect(own).toEqual([]);
    const store = ['--store', 'postgres://ann@127.0.0.1:1/db'];
    expect((await shown(...store)).PGPASSWORD).toBeUndefined();
    expect((await shown(...store, '--env', 'PGPASSWORD')).PGPASSWORD).toBe('s-postgres');
    for (const kind of ['s3', 'dynamodb']) {
      const address = `${kind}://ledger?region=eu-central-1&endpoint=http://127.0.0.1:1`;
      const seen = await shown('--store', address, '--env', 'AWS_ACCESS_KEY_ID');
      const names = Object.keys(seen).filter(
        (name) => String(seen[name]).startsWith('s-') && name !== 'PGPASSWORD',
      );
      expect([kind, seen.PGPASSWORD, names]).toEqual([kind, 's-postgres', ['AWS_ACCESS_KEY_ID']]);
    }
  });

  test('hints are ignored if the policy file says so', async () => {
    const here = proxyPlace();
    const client = here.client(['--policy', here.policy({}, { hints: 'ignore' })]);
    await client.call('peek', {});
    expect(isKept(await client.call('peek', {}))).toBe(true);
  });

  test("the policy file takes precedence over a tool's hints", async () => {
    const here = proxyPlace();
    const client = here.client(['--policy', here.policy({ peek: 'write-non-idempotent' })]);
    client.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
    await client.answer(1);
    await client.call('peek', {});
    expect(isKept(await client.call('peek', {}))).toBe(true);
  });

  test('a hint that the server withdraws is no longer trusted', async () => {
    const here = proxyPlace();
    const client = here.client();
    for (const _ of [1, 2]) await client.call('peek', {});
    expect(here.effects()).toHaveLength(2);
    client.write('{"jsonrpc":"2.0","method":"change"}\n');
    await eventually(() => client.stdout().includes('list_changed'));
    for (const _ of [1, 2]) await client.call('peek', {});
    expect(here.effects()).toHaveLength(3);
  });

  test('is another one than the tool of that name of another server', async () => {
    const here = proxyPlace();
    for (const name of ['shop', 'bank', 'shop', 'bank'])
      await here.client(['--name', name]).call('act', { n: 1 });
    expect(here.effects()).toHaveLength(2);
  });

  test('numbers that JavaScript would round are distinguished', async () => {
    const here = proxyPlace();
    const client = here.client();
    for (const [id, n] of [
      '12345678901234567',
      '12345678901234568',
      '12345678901234568',
      '1e400',
      '1e401',
    ].entries())
      client.write(
        `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"act","arguments":{"n":${n}}}}\n`,
      );
    for (const id of [0, 1, 2, 3, 4]) expect((await client.answer(id)).result?.isError).not.toBe(true);
    expect(here.effects()).toHaveLength(4);
  });

  test('args larger than a record holds still pass, and land once', async () => {
    const here = proxyPlace();
    const client = here.client();
    const body = 'x'.repeat(3_000_000);
    here.open();
    expect((await client.call('act-then-wait', { body })).result?.isError).not.toBe(true);
    expect(isKept(await client.call('act-then-wait', { body }))).toBe(true);
    expect(here.effects()).toHaveLength(1);
  });

  test('a result too large to keep is done once, and the second answer says so', async () => {
    const here = proxyPlace();
    const client = here.client();
    expect((await client.call('large')).result?.content?.[0]?.text).toHaveLength(2 * 1024 * 1024);
    expect(errorOf(await client.call('large'))?.code).toBe('RESULT_OMITTED');
    expect(here.effects()).toHaveLength(1);
  });
});

describe('everything else', () => {
  test('passes byte for byte, both ways', async () => {
    const here = proxyPlace();
    const client = here.client();
    const odd = [
      '{ "method":"odd","jsonrpc" : "2.0", "id":7,"params":{"\\u006b":"\\u00e9","n":1.00,"big":123456789012345678901} }\r\n',
      '\n',
      '{"jsonrpc":"2.0","method":"notifications/x","params":{"b":1,"a":2}}\n',
    ].join('');
    client.write(odd);
    await eventually(() => client.stdout().includes('notifications/odd'));
    expect(here.received()).toBe(odd);
    expect(client.stdout()).toBe(
      [
        '{ "id":7,  "result" : {"z":1.0,"a":[ ],"n":12345678901234567890,"u":"\\u00e9\\/"},"jsonrpc":"2.0" }\r\n',
        'not JSON at all\n',
        '{"method":"notifications/odd" ,"params":{ "b":1 ,"a":2 },"jsonrpc":"2.0"}\n',
      ].join(''),
    );
  });

  test('passes in pieces of any size', async () => {
    const here = proxyPlace();
    const client = here.client();
    const line = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"é":"\u{1f600}"}}\n';
    for (const byte of Buffer.from(line)) client.write(Buffer.from([byte]));
    await client.answer(1);
    expect(here.received()).toBe(line);
  });

  test('the call itself and its first answer are passed on byte for byte too', async () => {
    const here = proxyPlace();
    const client = here.client(['--policy', here.policy({ odd: 'write-non-idempotent' })]);
    const line =
      '{ "params":{"arguments":{"b":1.0,"a":"\\u00e9"},"name":"odd"},"method":"tools\\/call", "id":5,"jsonrpc":"2.0"}\r\n';
    client.write(line);
    await client.answer(5);
    expect(here.received()).toBe(line);
    expect(client.stdout()).toBe(
      '{ "id":5,  "result" : {"z":1.0,"content":[ ],"n":12345678901234567890,"u":"\\u00e9\\/"},"jsonrpc":"2.0" }\r\n',
    );
  });

  test('what the server says on stderr, its exit code and the signals for it pass', async () => {
    const here = proxyPlace();
    const client = here.client();
    client.write(
      '{"jsonrpc":"2.0","method":"stderr"}\n{"jsonrpc":"2.0","method":"exit","params":{"code":7}}\n',
    );
    expect(await client.ended).toEqual({ code: 7, signal: null });
    expect(client.stderr()).toContain('words of the server');

    const other = here.client();
    await other.call('peek');
    other.child.kill('SIGTERM');
    expect((await other.ended).code).toBe(42);
  });

  test('a server that cannot be started is reported as a shell would', async () => {
    const here = proxyPlace();
    expect(await here.semel('mcp', '--', './nothing')).toMatchObject({ code: 127 });
    here.file('plain', '');
    expect(await here.semel('mcp', '--', './plain')).toMatchObject({ code: 126 });
  });

  test('100 000 messages pass in order, 5 000 of them here', async () => {
    const here = proxyPlace();
    const client = here.client();
    const ids = Array.from({ length: 5_000 }, (_, id) => id);
    client.write(ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`).join(''));
    await client.answer(4_999);
    expect(client.stdout()).toBe(ids.map((id) => `{"jsonrpc":"2.0","id":${id},"result":{}}\n`).join(''));
  });
});

describe('what is not passed on', () => {
  test('a batch that contains a call: every request in it gets an error', async () => {
    const here = proxyPlace();
    const client = here.client();
    client.write(`[${lineOf(1, 'act', {}).trim()},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n`);
    expect((await client.answer(1)).error?.code).toBe(-32600);
    expect((await client.answer(2)).error?.code).toBe(-32600);
    expect(here.effects()).toEqual([]);
    expect(here.received()).toBe('');
  });

  test('what cannot be read, and a call that could not be answered', async () => {
    const here = proxyPlace();
    const client = here.client();
    client.write(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act","arguments":{"x":NaN}}}\n',
    );
    client.write(Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}\n')]));
    await eventually(() => client.stdout().split('-32700').length === 3);
    client.write('{"jsonrpc":"2.0","method":"tools/call","params":{"name":"act"}}\n');
    client.write('{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"act"}}\n');
    client.write('{"jsonrpc":"2.0","id":12345678901234567,"method":"tools/call","params":{"name":"act"}}\n');
    await eventually(() => client.stdout().split('-32600').length === 4);
    expect(here.received()).toBe('');
  });

  test('a second call under an id that is not answered yet', async () => {
    const here = proxyPlace();
    const client = here.client();
    client.write(lineOf(1, 'act-then-wait', { n: 1 }));
    await eventually(() => here.effects().length > 0);
    client.write(lineOf(1, 'act', { n: 2 }));
    expect((await client.answer(1)).error?.code).toBe(-32600);
    here.open();
    await eventually(() => client.stdout().includes('"done"'));
    expect(here.effects()).toEqual(['{"n":1}']);
  });
});

test('1 and "1" are two ids: each is answered, and by its own result', async () => {
  const here = proxyPlace();
  const client = here.client();
  client.write(lineOf(1, 'act-then-wait', { n: 1 }));
  client.write(lineOf(1, 'act-then-wait', { n: 2 }).replace('"id":1', '"id":"1"'));
  await eventually(() => here.effects().length === 2);
  here.open();
  for (const id of [1, '1']) expect((await client.answer(id)).result?.content?.[0]?.text).toBe('done');
});

describe('errors of the tool', () => {
  test('are in doubt: the first caller gets them with a line, the second is held', async () => {
    const here = proxyPlace();
    const client = here.client();
    const one = await client.call('fail', { n: 1 });
    expect(one.result).toMatchObject({ isError: true });
    expect(one.result?.content?.[0]?.text).toBe('it broke');
    expect(one.result?.content?.[1]?.text).toMatch(
      /^It may have had an effect before it failed, so the same call is not run again/,
    );
    expect(errorOf(one)?.code).toBe('IN_DOUBT');
    const two = await client.call('fail', { n: 1 });
    expect(two.result?.isError).toBe(true);
    expect(errorOf(two)?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
    expect((await here.semel('doubt')).stdout).toContain('fail');
  });

  test('mean what the policy file says', async () => {
    const here = proxyPlace();
    const refused = here.client([
      '--policy',
      here.policy({ fail: { effect: 'write-non-idempotent', errors: 'refused' } }),
    ]);
    expect((await refused.call('fail', { n: 1 })).result?.content).toHaveLength(1);
    expect(errorOf(await refused.call('fail', { n: 1 }))?.code).toBe('FAILED');
    expect(here.effects()).toHaveLength(1);
    const notLanded = here.client([
      '--policy',
      here.policy({ fail: { effect: 'write-non-idempotent', errors: 'not-landed' } }),
    ]);
    for (const _ of [1, 2]) expect(errorOf(await notLanded.call('fail', { n: 2 }))?.code).toBe('NOT_LANDED');
    expect(here.effects()).toHaveLength(3);
  });

  test('of the protocol: bad params are definite, an internal error is in doubt', async () => {
    const here = proxyPlace();
    const client = here.client();
    for (const code of [-32600, -32601, -32602, -32042]) {
      for (const _ of [1, 2]) {
        const answer = await client.call('error', { code });
        expect(answer.error?.code).toBe(code);
        const { correctiveAction } = errorOf(answer) ?? {};
        expect(errorOf(answer)?.code).toBe('NOT_LANDED');
        expect(correctiveAction).toMatch(code === -32602 ? /Correct the arguments/ : /may be made again/);
      }
    }
    const one = await client.call('error', { code: -32603 });
    expect(one.error).toMatchObject({ code: -32603, message: 'as it was asked' });
    expect(errorOf(one)?.code).toBe('IN_DOUBT');
    const two = await client.call('error', { code: -32603 });
    expect(two.error).toBeUndefined();
    expect(errorOf(two)?.code).toBe('IN_DOUBT');
  });
});

describe('rounds and tasks', () => {
  test('a question to the client is not kept; the round that answers it is one intent, however often it is sent', async () => {
    const here = proxyPlace();
    const client = here.client();
    for (const _ of [1, 2]) {
      const asked = await client.call('ask', { n: 1 });
      expect(asked.result).toMatchObject({ resultType: 'input_required', requestState: 's1' });
    }
    const round = { inputResponses: { q: { yes: true } }, requestState: 's1' };
    expect(isKept(await client.call('ask', { n: 1 }, round))).toBe(false);
    expect(isKept(await client.call('ask', { n: 1 }, round))).toBe(true);
    await client.call('ask', { n: 1 }, { ...round, inputResponses: { q: { yes: false } } });
    expect(here.effects()).toHaveLength(2);
  });

  test('under a key of the caller all rounds are one intent', async () => {
    const here = proxyPlace();
    const client = here.client();
    const idempotencyKey = 'k-1';
    expect((await client.call('ask', { n: 1 }, { idempotencyKey })).result?.resultType).toBe(
      'input_required',
    );
    const round = { inputResponses: { q: 1 }, requestState: 's1', idempotencyKey };
    expect((await client.call('ask', { n: 1 }, round)).result?.content?.[0]?.text).toBe('confirmed');
    expect(isKept(await client.call('ask', { n: 1 }, round))).toBe(true);
    expect(isKept(await client.call('ask', { n: 1 }, { idempotencyKey }))).toBe(true);
    expect(here.effects()).toHaveLength(1);
  });

  test('a task is begun once: the same call is asked about, also in another process', async () => {
    const here = proxyPlace();
    const one = await here.client().call('task', { n: 1 }, { task: { ttl: 60_000 } });
    expect(one.result?.task).toBeDefined();
    const client = here.client();
    const two = await client.call('task', { n: 1 }, { task: { ttl: 60_000 } });
    // A client that wants a task reads no other result.
    expect(two.error?.data).toHaveProperty('dev.semel/question');
    expect(two.error?.message).toMatch(/it began the task t-/);
    const plain = await client.call('task', { n: 1 });
    expect(plain.result?.content?.[0]?.text).toMatch(/it began the task t-/);
    expect((await client.call('task', { n: 2 }, { task: {} })).result?.task).not.toEqual(one.result?.task);
    expect(here.effects()).toHaveLength(2);
  });
});

describe('a client that changes its mind', () => {
  test('a cancelled call continues, is not answered, and is recorded', async () => {
    const here = proxyPlace();
    const client = here.client();
    client.write(lineOf(1, 'act-then-wait', { n: 1 }));
    await eventually(() => here.effects().length > 0);
    client.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n');
    client.write('{"jsonrpc":"2.0","method":"ping","id":2}\n');
    await client.answer(2);
    here.open();
    expect(isKept(await client.call('act-then-wait', { n: 1 }))).toBe(true);
    expect(here.received()).not.toContain('cancelled');
    expect(client.stdout()).not.toContain('"id":1,');
    expect(here.effects()).toHaveLength(1);
  });

  test('a call that is cancelled before it was sent is not sent', async () => {
    const here = proxyPlace();
    const client = here.client();
    // In one piece: the tools are not listed yet.
    client.write(
      `${lineOf(1, 'act', { n: 1 })}{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n`,
    );
    await client.call('act', { n: 2 });
    expect(isKept(await client.call('act', { n: 1 }))).toBe(false);
    expect(here.effects()).toEqual(['{"n":2}', '{"n":1}']);
  });

  test('a cancelled call of a tool that passes is cancelled at the server', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('peek');
    client.write(lineOf(1, 'peek', {}));
    client.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n');
    await eventually(() => here.received().includes('cancelled') || !here.received().includes('"id":1,'));
  });

  test('a client that leaves in the middle of a call does not lose its record', async () => {
    const here = proxyPlace();
    // A server goes when its client does, also in the middle of a call.
    const client = here.client([], ['goes']);
    client.write(lineOf(1, 'act-then-wait', { n: 1 }));
    await eventually(() => here.effects().length > 0);
    client.leave();
    client.child.stdout?.destroy();
    // Another process starts and ends meanwhile: whatever the proxy does when its client leaves, it does now or later.
    await here.semel('ls');
    here.open();
    expect((await client.ended).code).toBe(0);
    expect(isKept(await here.client([], ['goes']).call('act-then-wait', { n: 1 }))).toBe(true);
    expect(here.effects()).toHaveLength(1);
  });

  test('it is waited for as long as --grace says; then the call is in doubt, and a server that stays is ended', async () => {
    const here = proxyPlace();
    const client = here.client(['--grace', '300ms'], ['stays']);
    client.write(lineOf(1, 'act-then-wait', { n: 1 }));
    await eventually(() => here.effects().length > 0);
    client.leave();
    // By SIGTERM; by SIGKILL, where the machine is too busy for it to end by itself.
    expect([42, 137]).toContain((await client.ended).code);
    expect(errorOf(await here.client([], ['stays']).call('act-then-wait', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
  });
});

test('an endless message ends the proxy with one sentence, and none of it is passed on', async () => {
  const here = proxyPlace();
  const client = here.client();
  await client.call('peek');
  const before = here.received().length;
  for (let n = 0; n < 66; n += 1) client.write(Buffer.alloc(1024 * 1024, 120));
  expect((await client.ended).code).toBe(42);
  expect(client.stderr()).toContain('longer than');
  expect(here.received()).toHaveLength(before);
});

test('a server that dies in the middle of a call leaves it in doubt, and its exit code passes', async () => {
  const here = proxyPlace();
  const client = here.client();
  const answer = await client.call('die', { n: 1 });
  expect(errorOf(answer)?.code).toBe('IN_DOUBT');
  expect((await client.ended).code).toBe(3);
  expect(errorOf(await here.client().call('die', { n: 1 }))?.code).toBe('IN_DOUBT');
  expect(here.effects()).toHaveLength(1);
});

test('10 000 calls at once are all answered, each intent lands once, and the tools are listed once', async () => {
  const here = proxyPlace();
  const client = here.client();
  const ids = Array.from({ length: 10_000 }, (_, id) => id);
  client.write(ids.map((id) => lineOf(id, 'act', { n: id % 500 })).join(''));
  const seen = () => client.stdout().split('\n').length - 1;
  // On a busy machine it may stand still for a while.
  for (let before = 0, still = 0; seen() < ids.length && still < 300; before = seen()) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    still = seen() === before ? still + 1 : 0;
  }
  expect(seen()).toBe(ids.length);
  expect(client.stdout()).not.toContain('"error"');
  expect(here.effects()).toHaveLength(500);
  expect(readFileSync(here.path('listed'), 'utf8')).toBe('x\n');
});

test('secrets of the environment and of the server’s command are not in the ledger', async () => {
  const here = proxyPlace({ API_TOKEN: 'sk-very-secret' });
  const client = here.client([], ['--token=sk-very-secret']);
  await client.call('act', { n: 1 });
  client.leave();
  await client.ended;
  const ledger = await here.semel('export');
  expect(ledger.stdout).toContain('.act');
  expect(ledger.stdout + client.stderr()).not.toContain('sk-very-secret');
});
