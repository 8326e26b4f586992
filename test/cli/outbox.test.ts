// `semel outbox`: what is staged is listed, decided about, and delivered by the tools of a module.
import { join } from 'node:path';
import pg from 'pg';
import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { ownSchema } from '../servers/own-place.ts';
import { place } from './place.ts';

const library = join(import.meta.dirname, '../../src/index.ts');
const memory = join(import.meta.dirname, '../../src/store/memory.ts');

const tools = `
  import { appendFileSync } from 'node:fs';
  import { createSemel, Rejected } from '${library}';
  export const semel = createSemel({ namespace: 'shop', onWarning: () => undefined });
  semel.tool({ name: 'mail', effect: 'irreversible', per: 'ever', run: async ({ to }) => {
    if (to === 'nobody' && !process.env.FIXED) throw new Rejected('no such address');
    appendFileSync('sent', to + '\\n');
  } });
`;

async function staged(...names: readonly string[]) {
  const { url, schema } = await ownSchema();
  const address = `${url}?schema=${schema}&durability=accept-loss`;
  const at = place({ SEMEL_DRIVERS: join(import.meta.dirname, '../..'), SEMEL_STORE: address });
  at.file('tools.mjs', tools);
  await stageIn({ url, address }, ...names);
  return { ...at, url, schema, address };
}

async function stageIn(
  { url, address }: { readonly url: string; readonly address: string },
  ...names: readonly string[]
): Promise<void> {
  await using semel = createSemel({ store: address, namespace: 'shop' });
  const mail = semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    run: async (_args: { to: string }) => undefined,
  });
  const client = new pg.Client(url);
  await client.connect();
  await client.query('BEGIN');
  for (const to of names) await mail.stage(client, { to });
  await client.query('COMMIT');
  await client.end();
}

test('lists what waits, delivers it, and shows what is dead and why', async () => {
  const at = await staged('ada', 'nobody');
  expect((await at.semel('outbox', 'ls')).stdout).toMatch(
    /1 {2}shop {2}mail {2}\{"to":"ada"\} {2}waiting {2}staged.*\n2 {2}shop {2}mail {2}\{"to":"nobody"\} {2}waiting/,
  );
  const drained = await at.semel('outbox', 'drain', './tools.mjs');
  expect(drained.stdout).toMatch(/delivered {2}mail/);
  expect(drained.stdout).toMatch(/dead {2}mail .*no such address/);
  expect(drained.code).toBe(1);
  expect(at.lines('sent')).toEqual(['ada']);
  expect((await at.semel('outbox', 'dead')).stdout).toMatch(
    /^2 {2}shop {2}mail {2}\{.*\} {2}dead .*no such address/,
  );
  expect((await at.semel('outbox', 'show', '2')).stdout).toContain('"nobody"');
  expect((await at.semel('outbox', 'doubt')).stdout).toContain('Nothing is in doubt.');
});

test('a damaged row hides no other, and none obeys a terminal', async () => {
  const at = await staged('ada', 'eve', 'mallory');
  const client = new pg.Client(at.url);
  await client.connect();
  const change = (n: number, what: string) =>
    client.query(`UPDATE ${at.schema}.outbox SET ${what} WHERE n = ${n}`);
  await change(2, "call = '{', drift = '{', staged = 9223372036854775807, due = 9000000000000000");
  await change(3, "reason = E'\\x1b[31mred\\u202e', group_name = E'\\x1b]0;title\\x07'");
  await client.end();
  const listed = (await at.semel('outbox', 'ls')).stdout;
  expect(listed.trim().split('\n')).toHaveLength(3);
  const esc = String.fromCharCode(27);
  expect(listed).not.toContain(esc);
  const rows = (await at.semel('outbox', 'ls', '--json')).stdout.trim().split('\n');
  expect(rows.map((row) => JSON.parse(row))).toMatchObject([
    { n: 1, args: { to: 'ada' } },
    { n: 2, damaged: true, dueAt: null },
    { n: 3, damaged: true },
  ]);
  expect((await at.semel('outbox', 'show', '2')).stdout).toContain('was changed since it was staged');
  expect((await at.semel('outbox', 'show', '3', '--json')).stdout).not.toContain(esc);
  const drained = await at.semel('outbox', 'drain', './tools.mjs');
  expect([drained.code, at.lines('sent')]).toEqual([1, ['ada']]);
  expect(drained.stdout).not.toContain(esc);
});

test('retry delivers a dead row again, and drop removes one, after a question', async () => {
  const at = await staged('nobody', 'eve');
  await at.semel('outbox', 'drain', './tools.mjs');
  expect((await at.semel('outbox', 'retry', '1')).code).toBe(0);
  at.file('tools.mjs', tools.replace('!process.env.FIXED', 'false'));
  expect((await at.semel('outbox', 'drain', './tools.mjs', '--json')).code).toBe(0);
  expect((await at.semel('outbox', 'drain', './tools.mjs')).stdout).toBe('Nothing was due.\n');
  expect(at.lines('sent')).toEqual(['eve', 'nobody']);
  expect((await at.semel('outbox', 'ls')).stdout).toContain('Nothing is staged.');
  const other = await staged('nobody');
  await other.semel('outbox', 'drain', './tools.mjs');
  expect((await other.semel('outbox', 'drop', '1')).code).not.toBe(0);
  expect((await other.semel('outbox', 'drop', '1', '--yes')).stdout).toContain('was dropped');
  expect((await other.semel('outbox', 'show', '1')).stderr).toContain('no row 1');
});

test('what a person gave up may have landed: retry makes it an open question, and runs nothing', async () => {
  const at = await staged('eve');
  at.file('tools.mjs', tools.replace("to === 'nobody'", 'true').replace('new Rejected(', 'new Error('));
  expect((await at.semel('outbox', 'drain', './tools.mjs')).code).toBe(1);
  const [doubt] = (await at.semel('doubt', '--json')).stdout.match(/[0-9a-z]+@\d+/) ?? [];
  expect((await at.semel('resolve', String(doubt), 'abandon', '-m', 'nobody can tell')).code).toBe(0);
  expect((await at.semel('outbox', 'dead')).stdout).toContain('it may have landed');
  at.file('tools.mjs', tools);
  expect((await at.semel('outbox', 'retry', '1')).stdout).toContain('may have landed');
  expect((await at.semel('outbox', 'drain', './tools.mjs')).code).toBe(1);
  expect((await at.semel('outbox', 'doubt')).stdout).toContain('in doubt');
  expect(at.lines('sent')).toEqual([]);
});

test('a row whose doubt is decided says when it is tried, and retry does it at once', async () => {
  const at = await staged('eve');
  at.file('tools.mjs', tools.replace("to === 'nobody'", 'true').replace('new Rejected(', 'new Error('));
  await at.semel('outbox', 'drain', './tools.mjs');
  expect((await at.semel('outbox', 'ls')).stdout).toMatch(/^1 .* in doubt .*\nTo decide/);
  const [doubt] = (await at.semel('doubt', '--json')).stdout.match(/[0-9a-z]+@\d+/) ?? [];
  expect((await at.semel('resolve', String(doubt), 'run-again')).code).toBe(0);
  const { stdout } = await at.semel('outbox', 'ls');
  expect(stdout).toMatch(/^1 .* {2}decided: next try in .* \(at once: semel outbox retry 1\) /);
  expect(stdout).not.toMatch(/in doubt|To decide/);
  at.file('tools.mjs', tools);
  expect((await at.semel('outbox', 'retry', '1')).code).toBe(0);
  expect((await at.semel('outbox', 'drain', './tools.mjs')).code).toBe(0);
  expect(at.lines('sent')).toEqual(['eve']);
});

test('what a person gave up may have landed: once its record is gone, retry asks first', async () => {
  const at = await staged('eve');
  at.file('tools.mjs', tools.replace("to === 'nobody'", 'true').replace('new Rejected(', 'new Error('));
  await at.semel('outbox', 'drain', './tools.mjs');
  const [doubt] = (await at.semel('doubt', '--json')).stdout.match(/[0-9a-z]+@\d+/) ?? [];
  const [id] = String(doubt).split('@');
  expect((await at.semel('resolve', String(doubt), 'abandon', '-m', 'nobody can tell')).code).toBe(0);
  expect((await at.semel('forget', String(id), '--yes')).code).toBe(0);
  at.file('tools.mjs', tools);
  const asked = await at.semel('outbox', 'retry', '1');
  expect(asked.stdout).toContain('may have landed');
  expect(asked.stderr).toContain('no terminal to ask');
  expect((await at.semel('outbox', 'drain', './tools.mjs')).stdout).toBe('Nothing was due.\n');
  expect(at.lines('sent')).toEqual([]);
  expect((await at.semel('outbox', 'retry', '1', '--yes')).stdout).toContain('is delivered again');
  expect((await at.semel('outbox', 'drain', './tools.mjs')).code).toBe(0);
  expect(at.lines('sent')).toEqual(['eve']);
});

test('what a person gave up may have landed: after its window retry asks first, and then it runs', async () => {
  const at = await staged('eve');
  const brief = tools.replace("per: 'ever'", "per: 'run', window: '1s'");
  at.file('tools.mjs', brief.replace("to === 'nobody'", 'true').replace('new Rejected(', 'new Error('));
  await at.semel('outbox', 'drain', './tools.mjs');
  const [doubt] = (await at.semel('doubt', '--json')).stdout.match(/[0-9a-z]+@\d+/) ?? [];
  const [id] = String(doubt).split('@');
  expect((await at.semel('resolve', String(doubt), 'abandon', '-m', 'nobody can tell')).code).toBe(0);
  const show = async () => JSON.parse((await at.semel('show', String(id), '--json')).stdout);
  await expect.poll(show, { timeout: 10_000 }).toMatchObject({ record: { expired: true } });
  at.file('tools.mjs', brief);
  expect((await at.semel('outbox', 'retry', '1')).stdout).toContain('may have landed');
  expect((await at.semel('outbox', 'retry', '1', '--yes')).code).toBe(0);
  expect((await at.semel('outbox', 'drain', './tools.mjs')).code).toBe(0);
  expect(at.lines('sent')).toEqual(['eve']);
});

test('relay delivers until SIGTERM, finishes what runs then, and ends cleanly', async () => {
  const at = await staged('ada');
  const slow = tools.replace(
    'appendFileSync(',
    "if (to === 'bob') await new Promise((end) => setTimeout(end, 500)); appendFileSync(",
  );
  const begun = slow.replace("if (to === 'bob')", "appendFileSync('begun', to + '\\n'); if (to === 'bob')");
  at.file('tools.mjs', begun);
  const relay = at.start('outbox', 'relay', './tools.mjs');
  await expect.poll(() => at.lines('sent'), { timeout: 10_000 }).toEqual(['ada']);
  await stageIn(at, 'bob');
  await expect.poll(() => at.lines('begun'), { timeout: 10_000 }).toEqual(['ada', 'bob']);
  relay.child.kill('SIGTERM');
  const { code, signal, stdout, stderr } = await relay.ended;
  expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
  expect(stdout.match(/^delivered {2}mail/gm)).toHaveLength(2);
  expect(at.lines('sent')).toEqual(['ada', 'bob']);
  expect((await at.semel('outbox', 'ls')).stdout).toContain('Nothing is staged.');
});

test('a row behind one at which its group has stopped says so', async () => {
  const at = await staged('nobody', 'eve');
  const client = new pg.Client(at.url);
  await client.connect();
  await client.query(
    `UPDATE ${at.schema}.outbox SET group_name = 'a', state = CASE n WHEN 1 THEN 2 ELSE 0 END`,
  );
  await client.end();
  const { stdout } = await at.semel('outbox', 'ls');
  expect(stdout).toMatch(/^1 .* dead .*group a\n2 .* waiting .*group a {2}behind row 1\n/);
});

test('a SQLite ledger has one; a ledger that is not in a database has none, and says so', async () => {
  const at = place();
  expect((await at.semel('run', 'sync', '--', 'true')).code).toBe(0);
  expect((await at.semel('outbox', 'ls')).stdout).toContain('Nothing is staged.');
  at.file('store.mjs', `export { memoryStore as default } from '${memory}';`);
  const other = await at.semel('outbox', 'ls', '--store', 'module:./store.mjs');
  expect(other.stderr).toMatch(/no outbox.*Only SQLite and Postgres/s);
  expect(other.code).not.toBe(0);
});

test('an agent may look, but neither decides nor delivers: it could write the module', async () => {
  const at = await staged('ada');
  const agent = at.with({ env: { SEMEL_AGENT: '1' } });
  for (const args of [
    ['retry', '1'],
    ['drop', '1', '--yes'],
    ['relay', './tools.mjs'],
    ['drain', './tools.mjs'],
  ]) {
    const said = await agent.semel('outbox', ...args);
    expect([args, said.code, said.stderr]).toEqual([
      args,
      70,
      expect.stringContaining('is up to the operator'),
    ]);
  }
  // Also without the mark, inside a run that takes it off.
  const script = `env -u SEMEL_RUN -u SEMEL_HELD ${at.word} outbox drop 1 --yes; true`;
  const inside = await at.semel('run', 'job', '--per', 'none', '--', 'sh', '-c', script);
  expect(inside.stderr).toContain('is up to the operator');
  expect((await agent.semel('outbox', 'ls')).stdout).toMatch(/^1 {2}shop {2}mail .*waiting/);
  expect(at.lines('sent')).toEqual([]);
});
