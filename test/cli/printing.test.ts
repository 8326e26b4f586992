// What the command prints of a ledger whose text was written by strangers.

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
}, 30_000);

test('what is wrong with a file is said without its control characters', async () => {
  await createSemel({ store, onWarning: () => undefined }).open();
  const path = file('export.csv', 'id,\u001b]0;owned\u0007\n1,2\n');
  const { code, stderr } = await run('resolve', '--from', path, '--match', 'order');
  expect(stderr).toContain('The rows have: id, \\u001b]0;owned\\u0007.');
  expect(code).toBe(64);
}, 30_000);

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
])(
  'semel %s: no message repeats the password of an address',
  async (...words) => {
    const said = await run(...words);
    expect(said.code).not.toBe(0);
    expect(said.stderr).not.toMatch(/hunter2|hun.?ter2/);
    expect(said.stdout).not.toMatch(/hunter2|hun.?ter2/);
  },
  30_000,
);
