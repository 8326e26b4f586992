// What the command prints of a ledger whose text was written by strangers.

import { execFileSync, spawnSync } from 'node:child_process';
import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { place } from './place.ts';

const { folder, store, storeAt, file, semel: run } = place();

test('doubt prints no control characters, and a command that a shell reads as it is meant', async () => {
  const store = storeAt('the ledger.db');
  const namespace = "$(touch pwned) it's";
  const semel = createSemel({ store, namespace, onWarning: () => undefined });
  const tool = semel.tool({
    name: 'post',
    effect: 'irreversible',
    per: 'ever',
    run: (_args: { text: string }, ctx) => {
      ctx.note('re_1\u001b]0;owned\u0007\n  decide   semel resolve x landed');
      throw new Error('cut\u009b2J \u202edednal');
    },
  });
  await tool.try({ text: '\u009b31m red' });
  await semel.close();

  const options = ['--store', store, '--namespace', namespace];
  const { stdout } = await run('doubt', options);
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  expect(stdout).not.toContain('\u202e');
  expect(stdout.match(/^ +decide/gm)).toHaveLength(1);
  expect(stdout).toContain(`--namespace '$(touch pwned) it'\\''s' --store 'sqlite:${folder}/the ledger.db'`);

  const { stdout: json } = await run('doubt', '--json', options);
  expect(json.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  expect(JSON.parse(json)).toMatchObject([{ args: { text: '\u009b31m red' } }]);
});

test('reports what is wrong with a file without printing its control characters', async () => {
  await createSemel({ store, onWarning: () => undefined }).open();
  const path = file('export.csv', 'id,\u001b]0;owned\u0007\n1,2\n');
  const { code, stderr } = await run('resolve', '--from', path, '--match', 'order');
  expect(stderr).toContain('The rows have: id, \\u001b]0;owned\\u0007.');
  expect(code).toBe(64);
});

test.each([
  ['ls', '--store', 'postgres://ada:hun/ter2@db.example/shop'],
  ['ls', '--store', 'postgres://ada:12/hunter2@db.example/shop'],
  ['doctor', '--json', '--store', 'sqlite://ada:hunter2@db.example/shop'],
  ['doubt', '--store=sqlite:ada:hunter2@db.example'],
  ['store', 'copy', '--from', 'redis://hunter2@x:y/0', '--to', 'postgres://ada:hun ter2@db'],
  ['store', 'check', '--store', 'host=db user=ada password=hunter2'],
  ['ls', 'postgres://ada:hunter2@db.example/shop'],
  ['show', 'postgres://ada:hunter2@db.example/shop'],
  ['import', 'postgres://ada:hunter2 or@db.example/shop'],
  ['postgres://ada:hunter2@db.example/shop'],
  ['once', 'pay', '--id', 'a=1', '--lease', 'postgres://ada:hunter2@db.example/shop', '--', 'true'],
])('semel %s: no message repeats the password of an address', async (...words) => {
  const said = await run(...words);
  expect(said.code).not.toBe(0);
  expect(said.stderr).not.toMatch(/hunter2|hun.?ter2/);
  expect(said.stdout).not.toMatch(/hunter2|hun.?ter2/);
});

test('values that JSON does not know, and names that cannot be seen, break no list', async () => {
  const at = place({ SEMEL_NAMESPACE: 'odd' });
  const sparse: unknown[] = [];
  sparse[4_000_000_000] = 1;
  await using semel = createSemel({ store: at.store, namespace: 'odd', onWarning: () => undefined });
  const tool = semel.tool({
    name: 'post',
    effect: 'irreversible',
    per: 'ever',
    identity: ['id'],
    run: ({ id }: { id: string; more: unknown }) => {
      if (id.startsWith('lost')) throw new Error(`cut\u061c\u200b off\nsemel resolve x landed`);
      return { big: 7n, sparse, map: new Map([['a', 1n]]) };
    },
  });
  await tool({ id: 'kept\u202e', more: 1 });
  await tool({ id: 'lost \u061c1', more: 1 }).catch(() => undefined);
  await tool({ id: 'lost 2', more: 1 }).catch(() => undefined);
  const [{ id }] = (await at.json('ls', '--status', 'succeeded')) as [{ id: string }];
  const lines = [
    ['ls'],
    ['ls', '--args', 'kept'],
    ['ls', '--json'],
    ['show', id],
    ['show', id, '--json'],
    ['doubt'],
    ['doubt', '--json'],
    ['stats'],
    ['doctor'],
    ['export'],
  ];
  for (const said of await Promise.all(lines.map((words) => at.semel(...words)))) {
    expect([0, 1]).toContain(said.code);
    expect(`${said.stdout}${said.stderr}`.replaceAll('\n', '')).not.toMatch(
      /[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/u,
    );
    expect(said.stdout).not.toMatch(/^semel resolve x/m);
  }
});

test('a pipe or a device that is named as a file is refused at once, by every command that reads one', async () => {
  const at = place();
  await at.semel('once', 'mail', '--id', 'a=1', '--', 'true');
  execFileSync('mkfifo', [at.path('pipe')]);
  for (const named of ['pipe', '/dev/zero']) {
    const lines = [
      ['resolve', '--from', named, '--match', 'id', '--dry-run'],
      ['import', named, '--dry-run'],
      ['audit', named],
      ['once', 'pay', '--id-json', named, '--', 'true'],
      ['policy', 'check', named],
      ['policy', 'export', named],
      ['store', 'restore', named, '--yes'],
      ['doctor', '--store', `sqlite:${named}`],
    ];
    const said = await Promise.all(lines.map((words) => at.semel(...words)));
    expect(said.map(({ code }) => code)).toEqual([64, 64, 64, 64, 64, 64, 64, expect.any(Number)]);
    for (const { stderr } of said.slice(0, 7)) expect(stderr).toContain('not a regular file');
  }
  const substituted = spawnSync(
    'bash',
    ['-c', `${at.word} once pay --id-json <(echo '{"order":1}') -- echo paid`],
    {
      cwd: at.folder,
      env: at.env,
      encoding: 'utf8',
    },
  );
  expect(substituted.stdout).toBe('paid\n');
});

test.runIf(process.platform === 'linux')(
  'other users do not see the password of an address on the command line',
  async () => {
    const at = place();
    const show = ['--', 'sh', '-c', 'tr "\\0" " " < /proc/$PPID/cmdline'];
    const hidden = await at.semel('once', 'a', '--id', 'db=postgres://ada:hunter2@db.example/shop', show);
    expect([hidden.code, hidden.stdout]).toEqual([0, expect.not.stringContaining('hunter2')]);
    const shown = await at.semel('once', 'a', '--id', 'db=postgres://db.example/shop', show);
    expect(shown.stdout).toContain('postgres://db.example/shop');
  },
);

test('a ledger below /proc is refused, and nothing spins', async () => {
  const at = place();
  const said = await at.semel(
    'once',
    'mail',
    '--id',
    'a=1',
    '--store',
    'sqlite:/proc/semel/x/ledger.db',
    '--',
    'touch',
    'ran',
  );
  expect([said.code, said.stderr]).toEqual([69, expect.stringContaining('cannot be created')]);
});

test('what is meant to be pasted is quoted', async () => {
  const at = place();
  await at.semel('once', 'mail', '--id', 'a=1', '--', 'true');
  for (const command of ['ls', 'doubt', 'stats'])
    expect((await at.semel(command, '$(touch pwned)\u061c')).stderr).toContain(
      `--tool $'$(touch pwned)\\xd8\\x9c'`,
    );
  expect((await at.semel('run', 'a b;c')).stderr).toContain(`semel run 'a b;c' --`);
});
