// Messages that nobody should send, from clients and from servers: none passes unguarded, none is kept as what it is not.

import { describe, expect, test } from 'vitest';
import { atTheEnd, eventually } from '../cli/place.ts';
import { errorOf, isKept, proxyPlace } from './proxy.ts';
import { type RawClient, rawClient } from './raw-client.ts';

/** A server that answers a call with the text that its args hold, and writes down each call that it gets. */
const saying = `
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
createInterface({ input: process.stdin }).on('line', (line) => {
  if (line.trim() === '') return;
  const { id, method, params } = JSON.parse(line);
  if (method === 'tools/list') return console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [] } }));
  appendFileSync('seen', line + '\\n');
  if (id !== undefined) console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',' + (params?.arguments?.say ?? '"result":{}') + '}');
});
`;

function proxied() {
  const here = proxyPlace();
  const file = here.file('saying.mjs', saying.replace("'seen'", JSON.stringify(here.path('seen'))));
  const client = (...options: string[]): RawClient => {
    const made = rawClient(here.command(options, [process.execPath, file]), here.env);
    atTheEnd(() => void made.child.kill('SIGKILL'));
    return made;
  };
  return { ...here, client, seen: () => here.lines('seen') };
}

describe('what a client sends', () => {
  test('a call that names no tool is not passed on', async () => {
    const { client, seen } = proxied();
    const one = client();
    const nameless = ['{"name":["act"]}', '{"name":null}', '{"name":7}', '["act",{}]', '{}', 'null', '"act"'];
    for (const [id, params] of nameless.entries()) {
      one.write(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}\n`);
      expect((await one.answer(id)).error?.code).toBe(-32602);
    }
    expect(seen()).toEqual([]);
  });

  test('an argument that some servers take for one of the policy is refused', async () => {
    const { client, seen, policy } = proxied();
    const pay = {
      effect: 'write-non-idempotent',
      identity: ['to.account', 'amount'],
      volatile: ['a.b'],
      redact: ['card'],
      window: '24h',
      provider: { name: 'the bank', argument: 'idempotency_key', window: '24h' },
    };
    const one = client('--policy', policy({ pay }));
    const good = { to: { account: 'ann' }, amount: 1, note: 'x', NOTE: 'y', 'a.b': 1 };
    const bad = [
      { ...good, Amount: 500 },
      { to: { account: 'ann', Account: 'bob' }, amount: 1 },
      { To: { account: 'bob' }, amount: 1 },
      { to: [{ ACCOUNT: 'bob' }], amount: 1 },
      { ...good, Idempotency_Key: 'the model’s own' },
      { ...good, 'idempotency\u200b_\u212aey': 'the model’s own' },
      // To Java, which compares in upper case, a dotless i is an i.
      { ...good, '\u0131dempotency_key': 'the model’s own' },
      { ...good, Card: '4242' },
      { ...good, 'A.b': 1 },
    ];
    for (const args of bad) {
      const { error } = await one.call('pay', args);
      expect(error, JSON.stringify(args)).toMatchObject({
        code: -32602,
        message: expect.stringMatching(/some servers read it as ".+"\. Nothing ran/),
      });
    }
    expect(seen()).toEqual([]);
    expect((await one.call('pay', good)).result).toEqual({});
    expect(seen()).toHaveLength(1);
  });

  const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act","arguments":{}}}';
  test('what two readers would read in two ways is not passed on', async () => {
    const lines = {
      'two methods': call.replace('{', '{"method":"ping",'),
      'two methods, the call first': call.replace(/\}$/, ',"method":"ping"}'),
      'the call first, and in disguise': call
        .replace('tools/call', 'tools\\u002fcall')
        .replace(/\}$/, ',"method":"ping"}'),
      'two methods, one in disguise': call.replace('{', '{"\\u006dethod" : "ping",'),
      'two tools': call.replace('"name"', '"name":"read","name"'),
      'two amounts': call.replace('{}', '{"list":[{"n":1},{"n":1}],"a\\"b":1,"a\\"b":2}'),
      'in a batch': `[${call.replace('"id"', '"id":2,"id"')}]`,
      'on lines that only a server sees': `{"a":\r${call}\r}`,
      'after a mark of the order of bytes': `\ufeff${call}`,
      'a method to readers that ignore case': call.replace('"method"', '"Method"'),
      'two methods to readers that ignore case': call.replace('{', '{"METHOD":"ping",'),
      'an id with a capital of Turkish': call.replace('{', '{"\u0130d":2,'),
      'params with a long s': call.replace('"params"', '"param\u017f"'),
      'params with an escaped long s': call.replace('"params"', '"param\\u017f"'),
      'a name beside the name': call.replace('"name"', '"Name":"read","name"'),
      'args beside the args': call.replace('"arguments"', '"Arguments":{"n":1},"arguments"'),
      'a wide name': call.replace('"name"', '"\uff4e\uff41me":"read","name"'),
      'a name with something in it that nobody sees': call.replace('"name"', '"na\u200bme":"read","name"'),
      'a name with much in it that nobody sees': call.replace(
        '"name"',
        `"na${'\u200b'.repeat(200)}me":"read","name"`,
      ),
      'a name with much space around it': call.replace('"name"', `"name${' '.repeat(200)}":"read","name"`),
      'a method that is written in capitals': call.replace('tools/call', 'Tools/Call'),
      'a method with space around it': call.replace('tools/call', ' tools/call\\n'),
      'a name with space around it': call.replace('"name"', '"name ":"read","name"'),
      'in a batch of a batch': `[[${call}]]`,
      'a method in a list': call.replace('"tools/call"', '["tools/call"]'),
      'in a batch, a method in a list': `[${call.replace('"tools/call"', '["tools/call"]')}]`,
      'in a batch, in capitals': `[${call.replace('"method"', '"Method"')}]`,
      'a cancellation beside a cancellation':
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestID":1}}',
    };
    const { client, seen } = proxied();
    const one = client();
    for (const [place, line] of Object.values(lines).entries()) {
      one.write(`${line}\n`);
      await eventually(() => one.stdout().split('-32700').length === place + 2);
    }
    expect(seen()).toEqual([]);
  });

  test('two objects may have the same name, and a text may look like a name', async () => {
    const { client, seen } = proxied();
    const one = client();
    const args = {
      a: { n: 1 },
      list: [{ n: 1 }, { n: 1 }],
      text: '"n": "n":',
      'n\\': '\\',
      '{"n"': ['n', 'n', ':'],
    };
    await one.call('act', args);
    expect(seen()).toHaveLength(1);
  });

  test('decimals that JavaScript would round are distinguished too', async () => {
    const { client, seen } = proxied();
    const one = client();
    const amounts = [
      '1.000000000000000001',
      '1.000000000000000002',
      '0.1234567890123456781',
      '0.1234567890123456782',
      '0.30000000000000004',
      '0.30000000000000004',
      '0.5',
      '5e-1',
    ];
    for (const [id, n] of amounts.entries())
      one.write(
        `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"pay","arguments":{"n":${n}}}}\n`,
      );
    for (const id of amounts.keys()) await one.answer(id);
    expect(seen()).toHaveLength(6);
  });

  test('the answer to another request under the same id is not kept as that of a call', async () => {
    const here = proxyPlace();
    const file = here.file(
      'late.mjs',
      `import { createInterface } from 'node:readline';
      const late = [];
      const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
      createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method, params } = JSON.parse(line);
        const tools = [{ name: 'look', annotations: { readOnlyHint: true } }, { name: 'pay' }];
        if (method === 'tools/list') say(id, { tools });
        else if (method === 'go') for (const answer of late.splice(0)) answer();
        else late.push(() => say(id, { content: [{ type: 'text', text: params?.name ?? method }] }));
      });`,
    );
    const client = rawClient(here.command([], [process.execPath, file]), here.env);
    atTheEnd(() => void client.child.kill('SIGKILL'));
    const ask = (method: string, params: object = {}) =>
      client.write(`${JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })}\n`);
    const refusals = () => client.stdout().split('with this id is still unanswered').length - 1;
    const go = () => client.write('{"jsonrpc":"2.0","method":"go"}\n');
    const answers = (text: string) => eventually(() => client.stdout().includes(`"text":"${text}"`));
    ask('tools/call', { name: 'look' });
    // Answered by the server, so that what came before has been passed on.
    client.write('{"jsonrpc":"2.0","id":8,"method":"tools/list"}\n');
    await client.answer(8);
    ask('tools/call', { name: 'pay' });
    await eventually(() => refusals() === 1);
    go();
    await answers('look');
    ask('tools/call', { name: 'pay' });
    ask('ping');
    await eventually(() => refusals() === 2);
    await eventually(() => {
      go();
      return client.stdout().includes('"text":"pay"');
    });
    ask('ping');
    await eventually(() => {
      go();
      return client.stdout().includes('"text":"ping"');
    });
  });

  test('its last message may lack the end of its line: nobody waits for it', async () => {
    const { client, seen } = proxied();
    // Would it be waited for, the test would not end.
    const one = client('--grace', '1h');
    one.write('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act"}}');
    one.leave();
    await one.answer(1);
    expect((await one.ended).code).toBe(0);
    expect(seen()).toHaveLength(1);
  });
});

describe('what a server answers', () => {
  test('an empty error next to a result is not an error', async () => {
    const { client, seen } = proxied();
    const say = '"error":null,"result":{"content":[{"type":"text","text":"done"}]}';
    const one = client();
    const first = await one.call('act', { say });
    expect(first.result?.content).toEqual([{ type: 'text', text: 'done' }]);
    const again = await one.call('act', { say });
    expect(isKept(again)).toBe(true);
    expect(again.result?.content?.at(-1)?.text).toBe('done');
    expect(seen()).toHaveLength(1);
  });

  test('a reply with neither result nor error is in doubt, and says so', async () => {
    const { client, seen } = proxied();
    const one = client();
    const odd = ['"result":null', '"result":"done"', '"result":[1]', '"error":"no"', '"error":7'];
    for (const say of odd.flatMap((each) => [each, each]))
      expect(errorOf(await one.call('act', { say }))?.code).toBe('IN_DOUBT');
    expect(seen()).toHaveLength(odd.length);
  });

  test('a reply that is not a result ends a call that was passed on, and not the server', async () => {
    const { client, file } = proxied();
    const policy = file('policy.json', JSON.stringify({ version: 1, tools: { act: 'write-idempotent' } }));
    const one = client('--policy', policy);
    for (const say of ['"result":null', '"result":"done"', '"result":[1]', '"error":"no"'])
      expect(await one.call('act', { say })).toMatchObject(JSON.parse(`{${say}}`));
    expect(one.child.exitCode).toBeNull();
  });

  test('content that is not a list stays as it is, in an error and in a replay', async () => {
    const { client, file } = proxied();
    const policy = file(
      'policy.json',
      JSON.stringify({
        version: 1,
        tools: { act: { effect: 'write-non-idempotent', per: 'ever', errors: 'refused' } },
      }),
    );
    const one = client('--policy', policy);
    for (const content of ['null', '"done"', '{"type":"text"}', '[null,7]']) {
      const failed = { say: `"result":{"isError":true,"content":${content}}` };
      expect(errorOf(await one.call('act', failed))?.code).toBe('FAILED');
      expect(errorOf(await one.call('act', failed))?.code).toBe('FAILED');
      const done = { say: `"result":{"content":${content}}` };
      await one.call('act', done);
      const again = await one.call('act', done);
      expect(isKept(again)).toBe(true);
      const kept = JSON.parse(content);
      if (Array.isArray(kept)) expect(again.result?.content?.slice(0, kept.length)).toEqual(kept);
      else if (kept !== null) expect(again.result?.content).toEqual(kept);
      // Nor where the turn is guessed, and the result follows a question.
      const guessed = client();
      await guessed.call('act', done);
      const held = await guessed.call('act', done);
      expect(held.result?.content).toHaveLength(1 + (Array.isArray(kept) ? kept.length : 0));
    }
  });

  test('numbers that JavaScript would round are the same in a replay', async () => {
    const { client } = proxied();
    const say =
      '"result":{"content":[],"structuredContent":{"id":12345678901234567890,"list":[1.10,0.1234567890123456781,1e400],"n":7}}';
    const one = client();
    await one.call('act', { say });
    const two = client();
    await eventually(() => one.stdout().includes('12345678901234567890'));
    for (const each of [one, two]) {
      await each.call('act', { say });
      const line = each.stdout().trim().split('\n').at(-1) ?? '';
      expect(line).toContain('dev.semel/question');
      for (const number of ['12345678901234567890', '0.1234567890123456781', '1e400', '"n":7'])
        expect(line).toContain(number);
    }
  });
});
