// Policy files: what is accepted and what is not, by semel and by the schema that editors read; how they are made.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { isSemelError } from 'semel';
import { describe, expect, test } from 'vitest';
import { defineContract } from '../../src/core/contract/contract.ts';
import { effects } from '../../src/core/contract/words.ts';
import {
  calendar,
  contractName,
  errorMeanings,
  fileFields,
  type PolicyFile,
  periods,
  readPolicyFile,
  toolFields,
} from '../../src/mcp/policy/policies.ts';
import { findUnknownNames } from '../../src/mcp/policy/unknown-names.ts';
import { place } from '../cli/place.ts';
import { listening, readBody, startV1, startV2 } from './http-servers.ts';
import { fake, proxyPlace } from './proxy.ts';

const root = join(import.meta.dirname, '../..');
const schema = JSON.parse(readFileSync(join(root, 'semel.policy.schema.json'), 'utf8'));
const isValid = (file: unknown) => new AjvJsonSchemaValidator().getValidator(schema)(file).valid;
const one = (policy: unknown) => ({ version: 1, tools: { send: policy } });

describe('the schema agrees with what is read', () => {
  const { policy } = schema.definitions;
  const names = (object: object) => Object.keys(object).sort();

  test('it has every field, every effect, every period, every meaning', () => {
    expect(names(schema.properties)).toEqual([...fileFields].sort());
    expect(names(policy.properties)).toEqual([...toolFields].sort());
    expect(schema.definitions.effect.enum).toEqual(effects);
    expect(policy.properties.errors.enum).toEqual(errorMeanings);
    const [words, , slots] = policy.properties.per.anyOf;
    expect(words.enum).toEqual(periods);
    expect(names(slots.properties)).toEqual(names(calendar));
  });

  test.each([
    { version: 1 },
    { $schema: './semel.policy.schema.json', version: 1, hints: 'ignore', weakWindow: '5m', tools: {} },
    ...effects.filter((effect) => effect !== 'irreversible').map(one),
    one({ effect: 'irreversible', per: 'ever' }),
    one({ effect: 'irreversible', per: '24h' }),
    one({ effect: 'irreversible', per: 86_400_000 }),
    one({ effect: 'irreversible', per: { day: 'Europe/Paris' }, errors: 'refused', stakes: 'high' }),
    one({
      effect: 'write-non-idempotent',
      identity: ['to'],
      content: ['body'],
      volatile: ['at'],
      redact: ['card'],
    }),
    one({
      effect: 'write-non-idempotent',
      window: '7d',
      weakWindow: 60_000,
      failureWindow: '1h',
      lease: '30s',
      timeout: 'none',
    }),
    one({ effect: 'write-non-idempotent', repeat: 'by-call', timeout: '1.5h' }),
    one({ effect: 'write-non-idempotent', window: '24h', provider: 'stripe' }),
    one({ effect: 'write-non-idempotent', window: '1h', provider: { name: 'shop', window: '2h' } }),
    one({
      effect: 'write-non-idempotent',
      window: '1h',
      provider: { name: 'stripe', argument: 'idempotency_key' },
    }),
  ])('both accept %j', (file) => {
    expect(isValid(file)).toBe(true);
    expect(readPolicyFile(JSON.stringify(file), 'p.json')).toEqual(file);
  });

  const wrong: [unknown, string][] = [
    [[], 'p.json'],
    [{}, 'version'],
    [{ version: 2 }, 'version'],
    [{ version: 1, tool: {} }, 'tool'],
    [{ version: 1, hints: 'maybe' }, 'hints'],
    [{ version: 1, weakWindow: 'soon' }, 'weakWindow'],
    [{ version: 1, $schema: 7 }, '$schema'],
    [{ version: 1, tools: [] }, 'tools'],
    [one(null), 'tools.send'],
    [one('write'), 'tools.send'],
    [one({}), 'tools.send.effect'],
    [one({ effect: 'write' }), 'tools.send.effect'],
    [one({ effect: 'read', idenity: ['to'] }), 'tools.send.idenity'],
    [one({ effect: 'irreversible' }), 'tools.send'],
    [one('irreversible'), 'tools.send'],
    [one({ effect: 'write-non-idempotent', per: 'weekly' }), 'tools.send.per'],
    [one({ effect: 'write-non-idempotent', per: '24 hours' }), 'tools.send.per'],
    [one({ effect: 'write-non-idempotent', per: { fortnight: 'UTC' } }), 'tools.send.per'],
    [one({ effect: 'write-non-idempotent', per: { day: 'UTC', week: 'UTC' } }), 'tools.send.per'],
    [one({ effect: 'write-non-idempotent', identity: [] }), 'tools.send.identity'],
    [one({ effect: 'write-non-idempotent', identity: 'to' }), 'tools.send.identity'],
    [one({ effect: 'write-non-idempotent', content: [7] }), 'tools.send.content'],
    [one({ effect: 'write-non-idempotent', errors: 'never' }), 'tools.send.errors'],
    [one({ effect: 'write-non-idempotent', stakes: 'hgih' }), 'tools.send.stakes'],
    [one({ effect: 'write-non-idempotent', repeat: 'always' }), 'tools.send.repeat'],
    [one({ effect: 'write-non-idempotent', window: '1 day' }), 'tools.send.window'],
    [one({ effect: 'write-non-idempotent', lease: -1 }), 'tools.send.lease'],
    [one({ effect: 'write-non-idempotent', provider: 7 }), 'tools.send.provider'],
    [one({ effect: 'write-non-idempotent', identity: null }), 'tools.send.identity'],
    [one({ effect: 'write-non-idempotent', timeout: null }), 'tools.send.timeout'],
    [one({ effect: 'write-non-idempotent', redact: null }), 'tools.send.redact'],
    [one({ effect: 'write-non-idempotent', provider: { window: '1h' } }), 'tools.send.provider'],
    [
      one({ effect: 'write-non-idempotent', provider: { name: 'a', argument: 'a b' } }),
      'tools.send.provider',
    ],
    [one({ effect: 'write-non-idempotent', provider: { name: 'a', windw: 1 } }), 'tools.send.provider.windw'],
  ];
  test('a window together with a TTL is refused when the file is read', () => {
    const file = JSON.stringify(one({ effect: 'write-non-idempotent', per: '24h', window: '7d' }));
    expect(refusalOf(file)).toMatchObject({ message: expect.stringContaining('has no meaning with a TTL') });
  });

  test.each(wrong)('both refuse %j, and semel says where: %s', (file, path) => {
    // A policy that is the class alone has no place for `per`.
    if (JSON.stringify(file) !== JSON.stringify(one('irreversible'))) expect(isValid(file)).toBe(false);
    expect(refusalOf(JSON.stringify(file))).toMatchObject({
      path,
      message: expect.stringContaining('p.json'),
    });
  });

  test.each([
    ['nobody', '"nobody" is not a known provider'],
    ['github', 'github does not honour keys'],
    ['smtp', '"smtp" is not a known provider'],
    ['adyen', 'how long adyen remembers a key is not verified'],
    [{ name: 'stripe', window: '30d' }, 'stripe remembers a key for 1d'],
  ])('what only semel knows: provider %j', (provider, words) => {
    const { path, message } = refusalOf(
      JSON.stringify(one({ effect: 'write-non-idempotent', window: '1h', provider })),
    );
    expect(path).toBe('tools.send.provider');
    expect(message).toContain(words);
  });

  test("a window longer than the provider's is refused, with the fix", () => {
    const file = one({ effect: 'write-non-idempotent', window: '90d', provider: 'stripe' });
    expect(refusalOf(JSON.stringify(file)).correctiveAction).toBe('Shorten `window`.');
  });

  test.each([
    ['send', '{"version":1,"tools":{"send":{"effect":"irreversible","per":"ever"},"send":"read"}}'],
    ['effect', '{"version":1,"tools":{"send":{"effect":"write-non-idempotent","effect":"read"}}}'],
    ['tools', '{"version":1,"tools":{"send":"write-non-idempotent"},"tools":{}}'],
  ])('a duplicate name is refused, since only the last would count: %s', (path, text) => {
    expect(() => readPolicyFile(text, 'semel.policy.json')).toThrow(`\`${path}\` appears twice`);
  });

  test('what only semel knows: zones, fields that are named twice', () => {
    const zone = one({ effect: 'write-non-idempotent', per: { day: 'Europe/Nowhere' } });
    expect(refusalOf(JSON.stringify(zone)).path).toBe('tools.send.per');
    const twice = one({ effect: 'write-non-idempotent', identity: ['to'], content: ['to'] });
    expect(refusalOf(JSON.stringify(twice)).path).toBe('tools.send.content');
    expect(refusalOf('{"version":').message).toContain('not valid JSON');
    // In the words of a file: a program would call a function.
    expect(refusalOf(JSON.stringify(one('irreversible'))).message).toContain('{ "day": "Europe/Paris" }');
  });
});

test('two servers never share a contract, wherever their names have dots', () => {
  const pairs = [
    ['a', 'b.pay'],
    ['a.b', 'pay'],
    ['a', 'b-pay'],
    ['a-b', 'pay'],
    ['a.', 'pay'],
    ['a', '.pay'],
  ] as const;
  expect(new Set(pairs.map(([server, tool]) => contractName(server, tool))).size).toBe(pairs.length);
  // Nor does a tool that is called as another one's contract was made.
  const made = contractName('shop', 'send mail');
  expect(contractName('shop', made.slice('shop.'.length))).not.toBe(made);
});

test('every tool has a contract of its own, whatever it is called', () => {
  const names = [
    'send',
    'send mail',
    'send/mail',
    'send-mail',
    `${'x'.repeat(80)}1`,
    `${'x'.repeat(80)}2`,
    '…',
  ];
  const contracts = names.map((name) => contractName('shop', name));
  expect(new Set(contracts).size).toBe(names.length);
  for (const name of contracts)
    expect(() =>
      defineContract({ name, effect: 'read' }, { hasVerify: false, hasPrepare: false }),
    ).not.toThrow();
});

function refusalOf(text: string) {
  try {
    readPolicyFile(text, 'p.json');
  } catch (error) {
    if (isSemelError(error, 'CONTRACT_INVALID')) return error;
    throw error;
  }
  throw new Error(`${text} was accepted`);
}

describe('semel mcp --inspect', () => {
  test('--write spells out what cannot be seen in the name of a tool', async () => {
    const here = place();
    const server = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id } = JSON.parse(line);
      const result = { tools: [{ name: 'a\\u202eb\\u200b' }] };
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });`;
    await here.semel('mcp', '--inspect', '--write', 'made.json', ['--', process.execPath, '-e', server]);
    const text = readFileSync(here.path('made.json'), 'utf8');
    expect(text).toContain('"a\\u202eb\\u200b"');
    expect(JSON.parse(text).tools).toHaveProperty('a\u202eb\u200b');
  });

  test('lists the tools and what holds for each; --write makes a file to start from, and overwrites none', async () => {
    const here = place();
    const server = ['--', process.execPath, fake, here.folder];
    const shown = await here.semel('mcp', '--inspect', server);
    expect(shown.stdout).toMatch(/^peek +read +its readOnlyHint +- +-$/m);
    expect(shown.stdout).toMatch(/^put +write-idempotent +its idempotentHint +- +-$/m);
    expect(shown.stdout).toMatch(
      /^act +write-non-idempotent +no hint: assumed unsafe +turn +asks the model$/m,
    );
    const made = await here.semel('mcp', '--inspect', '--write', 'made.json', '--json', server);
    expect(made.code).toBe(0);
    expect(made.json()).toContainEqual({
      tool: 'peek',
      policy: 'read',
      errors: 'ask',
      source: 'readOnlyHint',
    });
    const file = JSON.parse(readFileSync(here.path('made.json'), 'utf8'));
    expect(isValid(file)).toBe(true);
    expect(file.tools.peek).toBe('read');
    // The choice is spelt out, with a word on what it means.
    expect(file.tools.act.errors).toBe('ask');
    expect(file.$comment).toContain('"in-doubt"');
    expect((await here.semel('policy', 'check', 'made.json')).stdout).toContain('12 tools');
    const again = await here.semel('mcp', '--inspect', '--write', 'made.json', server);
    expect(again).toMatchObject({ code: 64, stderr: expect.stringContaining('not overwritten') });
    const by = await here.semel('mcp', '--inspect', '--policy', 'made.json', server);
    expect(by.stdout).toMatch(/^act +write-non-idempotent +the policy file/m);
  });

  test.each([
    ['version 1 of the SDK, with sessions', startV1],
    ['version 2', startV2],
  ])('asks a server over HTTP: %s', async (_name, start) => {
    const here = place();
    const url = await start({ effects: here.path('effects') });
    const shown = await here.semel('mcp', '--inspect', '--http', url);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^send +write-non-idempotent/m) });
  });

  test('a server that wants to know who asks gets it from the environment, and not from the command line', async () => {
    const here = place();
    let wanted = 'Bearer s3cret';
    const url = await listening(async (request, response) => {
      if (request.headers.authorization !== wanted) return void response.writeHead(401).end();
      const { id, method } = JSON.parse(await readBody(request));
      const result = method === 'tools/list' ? { tools: [{ name: 'pay' }] } : {};
      response.setHeader('content-type', 'application/json');
      response.end(id === undefined ? '' : JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
    const env = { SEMEL_MCP_AUTHORIZATION: wanted };
    const shown = await here.with({ env }).semel('mcp', '--inspect', '--http', url);
    expect(shown.stdout).toContain('pay');
    wanted = 'another';
    const refused = await here.with({ env }).semel('mcp', '--inspect', '--http', url);
    expect(refused.stderr).toMatch(/401.*SEMEL_MCP_AUTHORIZATION/s);
    expect(refused.stderr).not.toContain('s3cret');
  });

  test('an error response that never ends is not waited for, and the secrets of the URL are not shown', async () => {
    const here = place();
    const url = await listening((_request, response) => {
      response.writeHead(401, { 'content-type': 'text/event-stream' }).write(':\n\n');
    });
    const secret = `${url.replace('//', '//ann:s3cret@')}?key=s3cret`;
    const refused = await here.semel('mcp', '--inspect', '--http', secret);
    expect(refused.stderr).toContain(`${url} could not be queried: The server answered 401.`);
    expect(refused.stderr).not.toContain('s3cret');
  });

  test('names that the server does not have are reported, by the proxy too when tools are listed', async () => {
    const here = proxyPlace();
    const policy = here.policy({
      atc: { effect: 'irreversible', per: 'ever' },
      act: { effect: 'irreversible', per: { day: 'Europe/Paris' } },
      put: { effect: 'irreversible', per: 'ever' },
    });
    const server = ['--', process.execPath, fake, here.folder];
    const shown = await here.semel('mcp', '--inspect', '--policy', policy, server);
    expect(shown.stdout).toMatch(
      /^act +irreversible +the policy file +day in Europe\/Paris +held for a person$/m,
    );
    expect(shown.stdout).toMatch(/^put +irreversible +the policy file +ever +held for a person$/m);
    const sentence = 'the policy file names `atc`, but this server has no such tool. Did you mean `act`?';
    expect(shown).toMatchObject({ code: 1, stderr: expect.stringContaining(sentence) });
    const client = here.client(['--policy', policy]);
    for (const id of ['one', 'two']) {
      client.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list', params: {} })}\n`);
      await client.answer(id);
    }
    expect(client.stderr().split(sentence)).toHaveLength(2);
  });

  test("a field that is not in the tool's schema is reported too", () => {
    const properties = { to: {}, body: {} };
    const send = { name: 'send', inputSchema: { type: 'object', properties } };
    const policy = { effect: 'write-non-idempotent', content: ['bodi'] } as const;
    const file: PolicyFile = { version: 1, tools: { send: policy } };
    expect(findUnknownNames(file, [send])).toEqual([
      'send: `content` names `bodi`, but its schema has no such field. Did you mean `body`?',
    ]);
    const open = { ...send, inputSchema: { ...send.inputSchema, additionalProperties: true } };
    expect(findUnknownNames(file, [open])).toEqual([]);
  });

  test('a server with endless fields is reported in one sentence', () => {
    const names = Array.from({ length: 100_000 }, (_, nth) => `field${nth}`);
    const fields = Array.from({ length: 5_000 }, (_, nth) => `field${99_999 - nth}`);
    const policy = { effect: 'write-non-idempotent', content: [...fields, 'something'] } as const;
    const file: PolicyFile = { version: 1, tools: { send: policy } };
    const of = (listed: readonly string[]) => {
      const properties = Object.fromEntries(listed.map((name) => [name, {}]));
      return findUnknownNames(file, [{ name: 'send', inputSchema: { type: 'object', properties } }]);
    };
    for (const listed of [names, ['x'.repeat(1_000_000), ...fields]])
      expect(of(listed).join().length).toBeLessThan(1_500);
    expect(of(names).join()).toContain('Its fields are field0, field1,');
  });

  test('a server that does not answer, or is not an MCP server, is reported', async () => {
    const here = place();
    expect((await here.semel('mcp', '--inspect', '--', 'false')).stderr).toContain(
      'before it listed its tools',
    );
    expect((await here.semel('mcp', '--inspect', '--', './nothing')).stderr).toContain(
      'could not be queried',
    );
    expect((await here.semel('mcp', '--inspect')).code).toBe(64);
  });
});

describe('semel policy', () => {
  const tools = `
    import { createSemel, day } from '${join(root, 'src/index.ts')}';
    export const semel = createSemel({ store: 'memory:' });
    const run = () => 1;
    export const refund = semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', identity: ['id'], redact: ['card'], timeout: '90s', run });
    export const others = {
      look: semel.tool({ name: 'look', effect: 'read', run }),
      post: semel.tool({ name: 'post', effect: 'write-non-idempotent', per: day('Europe/Paris'), content: ['text'], normalize: { to: 'email' }, run }),
    };
    export const policies = {
      send: { effect: 'write-non-idempotent', identity: ['to'], errors: 'refused', verify: run, provider: { name: 'shop', window: '1d' } },
      list: 'read',
    };`;

  test('export prints the file for the tools of a module; what a file cannot hold is named', async () => {
    const here = place();
    here.file('tools.ts', tools);
    const { code, stdout, stderr } = await here.semel('policy', 'export', './tools.ts');
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const file = JSON.parse(stdout);
    expect(isValid(file)).toBe(true);
    expect(file).toEqual({
      version: 1,
      tools: {
        refund: { effect: 'irreversible', per: 'ever', identity: ['id'], timeout: '90s', redact: ['card'] },
        look: 'read',
        post: { effect: 'write-non-idempotent', per: { day: 'Europe/Paris' }, content: ['text'] },
        send: { effect: 'write-non-idempotent', identity: ['to'], errors: 'refused' },
        list: 'read',
      },
    });
    expect(stderr).toContain('post.normalize is left out');
    expect(stderr).toContain('send.verify is left out');
    // It would tell a proxy that the server hands the key on.
    expect(stderr).toContain('send.provider is left out');
  });

  test('a module that is missing, or exports no tools, is reported', async () => {
    const here = place();
    here.file('empty.mjs', 'export const x = 1;');
    expect((await here.semel('policy', 'export', './empty.mjs')).stderr).toContain('exports no tools');
    expect((await here.semel('policy', 'export', './nothing.mjs')).stderr).toMatch(
      /could not be loaded: Cannot find module '[^']+'\. Name a file/,
    );
    expect((await here.semel('policy', 'eat', 'x')).code).toBe(64);
  });

  test('check names the place of a mistake, and so does mcp --policy', async () => {
    const here = place();
    here.file('p.json', '{"version":1,"tools":{"send":{"effect":"write-non-idempotent","window":"x"}}}');
    for (const words of [
      ['policy', 'check', 'p.json'],
      ['mcp', '--policy', 'p.json', '--', 'cat'],
    ]) {
      const said = await here.semel(words);
      expect(said.stderr).toContain('p.json: `tools.send.window` is wrong');
      expect(said.code).not.toBe(0);
    }
    expect((await here.semel('policy', 'check', 'nothing.json')).stderr).toContain(
      'there is no file nothing.json',
    );
  });
});
