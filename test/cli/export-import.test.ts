// `semel export` and `semel import`: a ledger moves, an action ledger is taken over, and nothing is lost or overwritten.

import { readFileSync } from 'node:fs';
import { createSemel, Rejected, type Semel } from 'semel';
import { describe, expect, test } from 'vitest';
import { eventually, place } from './place.ts';

const at = place({ SEMEL_STORE: '' });
const { semel, json, storeAt: store, file, start, folder } = at;

const on = (name: string, namespace = 'shop') => ['--store', store(name), '--namespace', namespace];

function open(name: string): Semel {
  return createSemel({ store: store(name), namespace: 'shop', onWarning: () => undefined });
}

function mailOf(library: Semel, run: (args: { lead: number }) => unknown) {
  return library.tool({ name: 'mail.send', effect: 'irreversible', per: 'ever', run });
}

const isDone = () => expect.fail('it ran again');

interface Line {
  readonly value?: unknown;
  readonly expired?: boolean;
  readonly key: string;
  readonly status: string;
  readonly history: readonly { readonly type: string }[];
}

const linesOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

async function filled(name: string): Promise<void> {
  const library = open(name);
  const mail = mailOf(library, ({ lead }) => {
    if (lead === 2) throw new Error('socket hang up\u001b[2J');
    if (lead === 3) throw new Rejected('no such address');
    return { id: `m-${lead}`, at: new Date(0) };
  });
  for (const lead of [1, 2, 3, 1]) await mail.try({ lead });
  await library.once('deploy', 'abc', () => 'live');
  await library.close();
}

describe('a ledger', () => {
  test('moves the effects of guarded commands: args as they were given, and another command line is still noticed', async () => {
    const send = (name: string, text: string) =>
      semel(['once', 'mail', ...on(name), '--id', 'lead=42', '--', 'echo', text]);
    await send('commands-old.db', 'first');
    const { stdout } = await semel(['export', ...on('commands-old.db')]);
    expect((linesOf(stdout)[0] as unknown as { args: unknown }).args).toEqual({ lead: '42' });
    await semel(['import', file('commands.jsonl', stdout), ...on('commands-new.db')]);
    const { stdout: replayed, stderr } = await send('commands-new.db', 'second');
    expect(replayed).toBe('first\n');
    expect(stderr).toContain('by another command line');
  });

  test('moves: what was done is replayed, what is open stays open, and twice is once', async () => {
    await filled('old.db');
    const { stdout, code } = await semel(['export', ...on('old.db')]);
    expect(code).toBe(0);
    expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    const lines = linesOf(stdout);
    expect(lines).toHaveLength(4);
    expect(lines.every((line) => 'semel' in line)).toBe(true);
    expect(lines.flatMap(({ history }) => history.map(({ type }) => type))).toEqual(['replayed']);
    const path = file('old.jsonl', stdout);

    const dry = await semel(['import', path, '--dry-run', ...on('new.db')]);
    expect(dry.stdout).toContain('Would import 4 (2 succeeded, 1 failed, 1 in doubt), skip 0.');
    expect((await semel(['doubt', ...on('new.db')])).code).toBe(69);

    const first = await at.with({ input: stdout }).semel('import', '-', on('new.db'));
    expect(first.stdout).toContain('Imported 4 (2 succeeded, 1 failed, 1 in doubt), skipped 0.');
    const before = (await semel(['export', ...on('new.db')])).stdout;
    const second = (await json(['import', path, ...on('new.db')])) as { skipped: unknown };
    expect(second).toMatchObject({ imported: { succeeded: 0, failed: 0, inDoubt: 0 } });
    expect(second.skipped).toContainEqual(
      expect.objectContaining({ because: 'there is a record of it already (succeeded)', count: 2 }),
    );
    expect((await semel(['export', ...on('new.db')])).stdout).toBe(before);

    await using library = open('new.db');
    expect(await library.once('deploy', 'abc', isDone)).toBe('live');
    const mail = mailOf(library, isDone);
    expect(await mail({ lead: 1 })).toEqual({ id: 'm-1', at: new Date(0) });
    expect(await mail.try({ lead: 2 })).toMatchObject({ error: { code: 'IN_DOUBT' } });
  });

  test('is exported in part', async () => {
    const exported = async (...args: string[]) =>
      linesOf((await semel(['export', ...args, ...on('old.db')])).stdout);
    expect(await exported('--tool', 'deploy')).toMatchObject([{ contract: 'deploy' }]);
    expect(await exported('--status', 'failed')).toMatchObject([{ status: 'failed' }]);
    expect(await exported('--status', 'in-doubt')).toMatchObject([{ inDoubt: true }]);
    expect((await semel(['export', '--since', '0s', ...on('old.db')])).stdout).toBe('');
  });

  test('of another namespace is refused, since the namespace is part of every key', async () => {
    const path = `${folder}/old.jsonl`;
    const { code, stderr } = await semel(['import', path, ...on('other.db', 'elsewhere')]);
    expect(code).toBe(64);
    expect(stderr).toContain('of namespace "shop", not "elsewhere"');
    expect(stderr).toContain('Nothing was imported. Leave out --namespace and SEMEL_NAMESPACE');
  });

  test('is followed: what changes is printed as it changes, until interrupted', async () => {
    await filled('followed.db');
    const { child, ended, stdoutBytes } = start(
      ['export', '--follow', '--every', '50ms', '--tool', 'deploy'],
      on('followed.db'),
    );
    // A line that is half written ends with no line break.
    const linesSoFar = () => {
      const text = stdoutBytes().toString();
      const end = text.lastIndexOf('\n');
      return end < 0 ? [] : linesOf(text.slice(0, end));
    };
    const line = (matches: (record: ReturnType<typeof linesOf>[number]) => boolean) =>
      eventually(() => linesSoFar().find(matches));
    await line(() => true);
    const library = open('followed.db');
    await library.once('deploy', 'def', () => 'live too');
    // On a busy machine it is also printed while it runs.
    const added = await line(({ value }) => value === 'live too');
    expect(added).toMatchObject({ contract: 'deploy', status: 'succeeded' });
    await library.records.forget(added!.key);
    await line(({ key, expired }) => key === added!.key && expired === true);
    await library.close();
    child.kill('SIGINT');
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    expect(linesOf(stdout).filter(({ status }) => status !== 'running')).toHaveLength(3);
  });

  test('that was followed is imported as it was last', async () => {
    const lines = readFileSync(`${folder}/old.jsonl`, 'utf8').trimEnd().split('\n');
    const done = lines.find((line) => line.includes('"deploy"'))!;
    const running = JSON.stringify({ ...JSON.parse(done), status: 'running', value: undefined });
    const path = file('followed.jsonl', `${running}\n${done}\n`);
    expect(await json(['import', path, ...on('last.db')])).toMatchObject({
      lines: 2,
      imported: { succeeded: 1, inDoubt: 0 },
    });
  });
});

describe('an action ledger', () => {
  const actions = [
    '{"key":"a","ts":"2026-06-19T09:00:00Z","status":"started"}',
    '{"key":"a","ts":"2026-06-19T09:00:01Z","status":"done","id":"m-1"}',
    '{"key":"b","ts":"2026-06-19T09:00:02Z","status":"Pending"}',
    '{"key":"c","ts":"2026-06-19T09:00:03Z","status":"failed"}',
    '{"key":"d/1","ts":1781859603,"status":"sent"}',
    '{"key":"d/1","ts":1781859604,"status":"error"}',
    '',
  ].join('\n');

  test('is taken over: done is done, begun is in doubt, failed may run again', async () => {
    const path = file('actions.jsonl', actions);
    const { stdout } = await semel(['import', path, '--tool', 'mail.send', ...on('actions.db')]);
    expect(stdout).toContain('Imported 3 (2 succeeded, 1 in doubt), skipped 1.');
    expect(stdout).toContain('1 skipped: its status is "failed": it may run again  c');
    expect((await semel(['import', path, '--tool', 'mail.send', ...on('actions.db')])).stdout).toContain(
      'Imported 0',
    );

    await using library = open('actions.db');
    const mail = mailOf(library, ({ lead }) => (lead === 3 ? 'sent now' : isDone()));
    expect(await mail({ lead: 1 }, { key: 'a' })).toMatchObject({ key: 'a', status: 'done', id: 'm-1' });
    expect(await mail({ lead: 4 }, { key: 'd/1' })).toMatchObject({ status: 'sent' });
    expect(await mail.try({ lead: 2 }, { key: 'b' })).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(await mail({ lead: 3 }, { key: 'c' })).toBe('sent now');
    expect(await library.records.history('mail.send/=a')).toMatchObject([
      { type: 'noted', detail: { imported: { settledAt: '2026-06-19T09:00:01.000Z' } } },
      { type: 'replayed' },
    ]);
  });

  test('with unknown statuses is refused until they are mapped', async () => {
    const path = file(
      'odd.jsonl',
      '{"key":"a","status":"handed over\\u001b[2J"}\n{"key":"b","status":"bounced"}\n',
    );
    const refused = await semel(['import', path, '--tool', 'mail.send', ...on('odd.db')]);
    expect(refused.code).toBe(64);
    expect(refused.stderr).toContain('"bounced" (line 2)');
    expect(refused.stderr.trimEnd()).not.toMatch(/\p{Cc}/u);
    expect((await semel(['doubt', ...on('odd.db')])).stdout).toBe('');
    const bounced = file('bounced.jsonl', '{"key":"b","status":"bounced"}\n');
    const mapped = ['import', bounced, '--tool', 'mail.send', '--map', 'bounced=doubt', ...on('odd.db')];
    expect((await semel(mapped)).stdout).toContain('Imported 1 (1 in doubt)');
  });

  test('whose lines have no status is imported once `none` is mapped', async () => {
    const path = file('bare.jsonl', '{"key":"a","ts":"2026-06-19T09:00:00Z"}\n{"key":"b","status":null}\n');
    const refused = await semel(['import', path, '--tool', 'mail.send', ...on('bare.db')]);
    expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining('--map none=done')]);
    const mapped = ['import', path, '--tool', 'mail.send', '--map', 'none=done', ...on('bare.db')];
    expect((await semel(mapped)).stdout).toContain('Imported 2');
  });

  test('needs the name of its contract', async () => {
    const { code, stderr } = await semel(['import', `${folder}/actions.jsonl`, ...on('unnamed.db')]);
    expect(code).toBe(64);
    expect(stderr).toContain('--tool <name>');
  });
});

describe('a file with lines that cannot be read', () => {
  const good = '{"key":"a","status":"done"}';
  const broken = `${good}\n{"key":"b","sta\n{"status":"done"}\n${good.replace('"a"', '"c"')}\n`;

  test('is refused whole, and its lines are named', async () => {
    const { code, stderr, stdout } = await semel([
      'import',
      file('broken.jsonl', broken),
      '--tool',
      'm',
      ...on('bad.db'),
    ]);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toContain('2 of 4 lines cannot be read (line 2: it is not JSON; line 3: it has no `key`)');
    expect(stderr).toContain('Nothing was imported.');
    expect((await semel(['export', ...on('bad.db')])).stdout).toBe('');
  });

  test('is not given up with the stack of one that is nested too deep', async () => {
    const deep = '['.repeat(20_000) + ']'.repeat(20_000);
    const path = file('deep.jsonl', `${good}\n{"key":"b","status":"done","args":${deep}}\n`);
    const { code, stderr } = await semel(['import', path, '--tool', 'm', ...on('deep.db')]);
    expect(code).toBe(64);
    expect(stderr).toContain('1 of 2 lines cannot be read (line 2: it is nested too deep)');
  });

  test('is imported without them where that is said', async () => {
    const args = ['import', `${folder}/broken.jsonl`, '--tool', 'm', '--skip-bad', ...on('bad.db')];
    const { code, stderr, stdout } = await semel(args);
    expect(code).toBe(0);
    expect(stdout).toContain('Imported 2 (2 succeeded), skipped 0.\n  2 could not be read');
    expect(stderr).toContain('line 2 was skipped: it is not JSON.');
  });

  test.each([
    [['import'], 'expects one file'],
    [['import', 'nowhere.jsonl'], 'there is no file nowhere.jsonl'],
    [['import', '.'], '. is a folder'],
    [['import', '-'], 'the file has no lines'],
    [['import', 'x', '--map', 'done'], '--map done is not valid'],
    [['export', 'x'], 'takes no file'],
  ])('%j is refused: %s', async (args, sentence) => {
    const { code, stderr } = await semel([...args, ...on('usage.db')]);
    expect(stderr).toContain(sentence);
    expect(code).toBe(64);
  });
});
