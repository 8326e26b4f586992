// `semel ls`: what is listed, in which order, and what is told again.

import { createInterface } from 'node:readline';
import { createSemel, day } from 'semel';
import { describe, expect, test } from 'vitest';
import { filterOf } from '../../src/cli/commands/ls/filter.ts';
import { rig } from '../library/support.ts';
import { operator } from './operator.ts';

const desk = operator();

const tos = (rows: Record<string, unknown>[]) => rows.map(({ args }) => (args as { to?: string }).to);

test('records are listed newest first, filtered, and limited with a note about the rest', async () => {
  await desk.by(async (semel, mail) => {
    const on = { conversation: 'c-1', run: 'r-1' };
    await mail({ to: 'ann' }, on);
    await mail.try({ to: 'lost-1' }, on);
    await mail.try({ to: 'nobody' }, { conversation: 'c-2' });
    await mail({ to: 'bob' });
    await semel.once('blog', {}, { per: day(), at: new Date('2026-06-19T09:00Z') }, () => 'posted');
    await mail({ to: 'key' }, { key: 'order 7' });
  });
  const table = await desk.semel(['ls', '-n', '2']);
  expect(table.code).toBe(0);
  const lines = table.stdout.split('\n');
  expect(lines[0]).toMatch(/^id +contract +status +attempts +age +args$/);
  expect(lines[1]).toMatch(/^\w{10} {2}mail.send order 7 +succeeded +1 .*\{"to":"key"\}$/);
  expect(lines[2]).toMatch(/^\w{10} {2}blog 2026-06-19 +succeeded/);
  expect(table.stdout).toContain('The newest 2 of 6');
  expect(table.stdout).toContain(`semel show <id> --namespace shop --store ${desk.store}`);

  const all = (await desk.semel(['ls', '--json', '--tool', 'mail.send'])).json();
  expect(tos(all)).toEqual(['key', 'bob', 'nobody', 'lost-1', 'ann']);
  const asked: [string[], string[]][] = [
    [
      ['--conversation', 'c-1'],
      ['lost-1', 'ann'],
    ],
    [['--run', 'r-1', '--status', 'succeeded'], ['ann']],
    [
      ['--status', 'in-doubt', '--status', 'failed'],
      ['nobody', 'lost-1'],
    ],
    [['--key', 'mail.send/=', '--newer', '1h'], ['key']],
    [['--args', 'BOB'], ['bob']],
    [['--find', 'order 7'], ['key']],
    [
      ['--find', 'r-1'],
      ['lost-1', 'ann'],
    ],
    [['--find', String(all[1]?.ref)], ['bob']],
    [['--find', 'order@163.com'], []],
  ];
  for (const [flags, expected] of asked)
    expect(tos((await desk.semel(['ls', '--json', ...flags])).json()), flags.join(' ')).toEqual(expected);
});

test('a tool may be called order.place or lock.door: what of it is in doubt is listed', async () => {
  const names = ['order.place', 'lock.door'];
  const { store, semel: run } = operator();
  await using semel = createSemel({ store, namespace: 'shop' });
  for (const name of names) await semel.once(name, { job: 'night' }, {}, lose).catch(() => undefined);
  for (const command of ['ls', 'doubt']) {
    const rows = (await run([command, '--json'])).json();
    expect(rows.map(({ contract }) => contract).sort(), command).toEqual([...names].sort());
  }
});

function lose(): never {
  throw new Error('socket hang up');
}

test('an empty namespace prints which namespaces have records, and their doubts', async () => {
  const other = await desk.semel(['ls', '--namespace', 'nowhere']);
  expect(other.stderr).toContain('no records in the namespace nowhere');
  expect(other.stderr).toContain('shop (1 in doubt)');
  const none = await desk.semel(['ls', '--status', 'lapsed']);
  expect(none.stdout).toContain('No record of shop matches.');
  expect(none.stderr).toBe('');
});

test('reports what is wrong with the options', async () => {
  for (const [flags, message] of [
    [['--status', 'done'], '--status must be one of running, '],
    [['-n', '0'], 'Write a whole number from 1 to 10000'],
    [['--since', 'yesterday'], '--since "yesterday" is not a time'],
    [['mail.send'], 'semel ls --tool mail.send'],
  ] as const) {
    const { code, stderr } = await desk.semel(['ls', ...flags]);
    expect(stderr).toContain(message);
    expect(code).toBe(64);
  }
});

test('--watch --json prints the records, then the changes, and exits cleanly on Ctrl-C', async () => {
  const room = operator();
  await room.by((_, mail) => mail({ to: 'first' }));
  const watching = room.start(['ls', '--watch', '--json']);
  const lines = createInterface({ input: watching.child.stdout! })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value as string);
  expect(await next()).toMatchObject({ args: { to: 'first' }, status: 'succeeded' });
  await room.by((_, mail) => mail.try({ to: 'lost-2' }));
  // It may be seen while it runs.
  let seen = await next();
  if (seen.status === 'running') seen = await next();
  expect(seen).toMatchObject({ args: { to: 'lost-2' }, status: 'unknown', inDoubt: true });
  watching.child.kill('SIGINT');
  expect(await watching.ended).toMatchObject({ code: 0, signal: null });
  expect(await lines.next()).toMatchObject({ done: true });
});

describe('a filter', () => {
  test('asks the ledger only for what is open, where only that is wanted', () => {
    expect(filterOf({ status: ['in-doubt'] }).queries).toEqual([
      { status: 'running' },
      { status: 'unknown' },
    ]);
    expect(filterOf({ status: ['running', 'lapsed'], tool: 'x' }).queries).toEqual([
      { contract: 'x', status: 'running' },
      { contract: 'run.x', status: 'running' },
    ]);
    expect(filterOf({}).queries).toEqual([{}]);
  });

  test('takes a lapsed attempt for lapsed, and not for running', async () => {
    const { semel, clock } = rig();
    const base = { effect: 'irreversible', per: 'ever' } as const;
    const sent = semel.tool({ ...base, name: 'sent', run: (_: object) => 1 });
    const before = semel.tool({ ...base, name: 'before', dispatch: 'explicit', run: (_: object) => 1 });
    await semel.begin(sent, {});
    await semel.begin(before, {});
    const named = async (word: string) => {
      const filter = filterOf({ status: [word] });
      const { items } = await semel.records.list();
      return items.filter((record) => filter.matches(record)).map(({ contract }) => contract);
    };
    expect(await named('running')).toEqual(['before', 'sent']);
    clock.jump(120_000);
    expect(await named('running')).toEqual([]);
    expect(await named('lapsed')).toEqual(['before', 'sent']);
    expect(await named('in-doubt')).toEqual(['sent']);
    expect(await named('abandoned')).toEqual(['before']);
  });
});
