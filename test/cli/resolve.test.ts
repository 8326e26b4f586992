// `semel resolve` of many: a group by its error, and whatever a provider's export has.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { valueAt } from '../../src/cli/args/path.ts';
import { settleMany } from '../../src/cli/commands/resolve/many.ts';
import { pairOf, recordTexts, rowText, textOf } from '../../src/cli/commands/resolve/match.ts';
import type { RecordInfo } from '../../src/semel/index.ts';
import { rig } from '../library/support.ts';
import { mailOf, operator } from './operator.ts';

type Desk = ReturnType<typeof operator>;

async function lose(desk: Desk, ...tos: string[]): Promise<void> {
  await desk.by(async (_, mail) => {
    for (const to of tos) await mail.try({ to });
  });
}

async function openIn(desk: Desk): Promise<string[]> {
  const { items } = await desk.by((semel) => semel.doubts.list());
  return items.map(({ args }) => (args as { to: string }).to).sort();
}

function file(desk: Desk, name: string, text: string): string {
  const path = join(desk.folder, name);
  writeFileSync(path, text);
  return path;
}

const byTo = ['--match', 'to=args.to'];

describe('a group', () => {
  const group = ['resolve', '--tool', 'mail.send', '--error', 'socket hang up'];

  test('is settled by one verdict, and no other record is', async () => {
    const desk = operator();
    await lose(desk, 'lost-1', 'lost-2', 'cut-1');
    const plan = await desk.semel([...group, 'landed', '--dry-run']);
    expect(plan.code).toBe(0);
    expect(plan.stderr).toContain('2 in doubt, to be settled as: landed.');
    expect(plan.stderr).toContain(
      'later calls get no result (undefined). If the effect returns something, add --result',
    );
    expect(await openIn(desk)).toEqual(['cut-1', 'lost-1', 'lost-2']);

    const unasked = await desk.semel([...group, 'landed']);
    expect(unasked.code).toBe(64);
    expect(unasked.stderr).toContain('there is no terminal to ask for confirmation');
    expect(await openIn(desk)).toEqual(['cut-1', 'lost-1', 'lost-2']);

    const done = await desk.semel([...group, 'landed', '--result', '{"id":"seen"}', '--yes', '-m', 'outbox']);
    expect(done.code).toBe(0);
    expect(done.stdout.match(/settled: succeeded/g)).toHaveLength(2);
    expect(done.stdout).toContain('2 settled, 0 refused.');
    expect(await openIn(desk)).toEqual(['cut-1']);
    expect(await desk.by((_, mail) => mail({ to: 'lost-1' }))).toEqual({ id: 'seen' });
    const again = await desk.semel([...group, 'landed', '--yes']);
    expect(again.stdout).toContain('Nothing in doubt matches.');
    expect(again.code).toBe(0);
  });

  test('reports each outcome, and exits with 70 if one was refused', async () => {
    const desk = operator();
    await lose(desk, 'lost-1', 'lost-2');
    const refused = await desk.semel([...group, 'not-landed', '--yes', '--json']);
    expect(refused.code).toBe(70);
    expect(refused.json()).toMatchObject([
      { outcome: 'refused', why: expect.stringContaining('may still land') },
      { outcome: 'refused' },
    ]);
    const forced = await desk.semel([...group, 'not-landed', '--yes', '--force']);
    expect(forced.code).toBe(0);
    expect(await openIn(desk)).toEqual([]);
  });

  test('needs a verdict that can be said of many', async () => {
    const desk = operator();
    await lose(desk, 'lost-1');
    for (const [args, message] of [
      [[...group], 'the verdict is missing'],
      [[...group, 'died', '--yes'], 'died is a verdict about one record'],
      [[...group, 'abandon', '--yes'], 'abandon needs a reason'],
      [[...group, 'done', '--yes'], '"done" is not a verdict'],
      [[...group, 'not-landed', '--result', '1', '--yes'], '--result only goes with landed'],
      [[...group, 'abc@1', 'landed'], 'one record, or a group'],
      [[...group, 'landed', '--match', 'to', '--yes'], '--match needs an export'],
      [['resolve', 'abcd@1', 'landed', '--where', 'a=b'], '--where needs an export'],
    ] as const) {
      const { code, stderr } = await desk.semel(args);
      expect(stderr).toContain(message);
      expect(code).toBe(64);
    }
    expect(await openIn(desk)).toEqual(['lost-1']);
  });
});

test('what changed after it was listed is refused, and the others are settled', async () => {
  const { semel } = rig();
  const mail = mailOf(semel);
  for (const to of ['lost-1', 'lost-2', 'lost-3']) await mail.try({ to });
  const { items } = await semel.doubts.list();
  const decisions = items.map(({ namespace, key, ref, contract }) => ({
    namespace,
    key,
    ref,
    contract,
    resolution: { landed: 'seen' },
    note: undefined,
    because: '',
  }));
  await semel.doubts.resolve(items[1]!.ref, { landed: 'seen by another' });
  const told: string[] = [];
  const reports = await settleMany({ in: () => semel }, decisions, { by: 'ann' }, ({ outcome }) =>
    told.push(outcome),
  );
  expect(told).toEqual(['settled', 'refused', 'settled']);
  expect(reports[1]?.why).toContain('has been settled since it was looked at');
  expect(await Promise.all(items.map(async ({ key }) => (await semel.records.get(key))?.value))).toEqual([
    'seen',
    'seen by another',
    'seen',
  ]);
});

describe('an export', () => {
  test('settles what it has, with the row as the result, and leaves the others open', async () => {
    const desk = operator();
    await lose(desk, 'lost-1', 'lost-2', 'lost-3', 'lost-4');
    const path = file(
      desk,
      'mails.csv',
      '\ufeffto;status;text\r\nlost-1;sent;"a;b"\r\nlost-2;bounced;x\r\nlost-3;sent;"two\r\nlines"\r\nlost-3;sent;y\r\nstranger;sent;z\r\n',
    );
    const plan = await desk.semel(['resolve', '--from', path, ...byTo, '--dry-run']);
    expect(plan.stderr).toContain('5 rows, 4 in doubt: 2 found, 1 unclear, 1 not found and left open.');
    expect(plan.stderr).toContain('have a field status (sent, bounced)');
    expect(plan.stderr).toContain('lines 4, 6 all match it: it may have landed more than once');
    expect(plan.stdout).toBe('Nothing was changed. Leave out --dry-run to settle.\n');
    expect(await openIn(desk)).toHaveLength(4);

    const args = [
      'resolve',
      '--from',
      path,
      ...byTo,
      '--where',
      'status=sent',
      '--ref-field',
      'text',
      '--yes',
    ];
    const done = await desk.semel([...args, '-m', 'outbox of June']);
    expect(done.code).toBe(0);
    expect(done.stderr).not.toContain('have a field status');
    expect(await openIn(desk)).toEqual(['lost-2', 'lost-3', 'lost-4']);
    const { value, receipt } = await desk.by(async (_, mail) => {
      const result = await mail.try({ to: 'lost-1' });
      return { value: result.ok ? result.value : undefined, receipt: result.receipt };
    });
    expect(value).toEqual({ to: 'lost-1', status: 'sent', text: 'a;b' });
    expect(receipt.remoteRef).toBe('a;b');
    const history = await desk.by((semel) => semel.records.history(receipt.key));
    expect(history[0]?.detail).toMatchObject({ act: 'landed', note: 'outbox of June (mails.csv, line 2)' });
  });

  test('is read from stdin too, as JSON lines or an array, and names records by what they are called', async () => {
    const desk = operator();
    await lose(desk, 'lost-1', 'lost-2');
    const { items } = await desk.by((semel) => semel.doubts.list());
    const [one, other] = items;
    const first = JSON.stringify({ meta: { semel: one!.key }, out: { id: 7 } });
    const done = await desk
      .with({ input: `${first}\n` })
      .semel('resolve', '--from', '-', '--match', 'meta.semel', '--result-field', 'out', '--yes', '--json');
    expect(done.json()).toEqual([
      { ref: one!.ref, contract: 'mail.send', outcome: 'settled', status: 'succeeded' },
    ]);
    expect(await desk.by((_, mail) => mail(one!.args as { to: string }))).toEqual({ id: 7 });
    const array = await desk
      .with({ input: `[{"id":"${other!.id}"}]` })
      .semel('resolve', '--from', '-', '--match', 'id', '--yes');
    expect(array.code).toBe(0);
    expect(await openIn(desk)).toEqual([]);
  });

  test('settles nothing if any of it is malformed, or if a name is misspelt', async () => {
    const desk = operator();
    await lose(desk, 'lost-1');
    const long = `to,n\nlost-1,1\n${'x,1\n'.repeat(50_000)}`;
    const latin = join(desk.folder, 'latin.csv');
    writeFileSync(latin, Buffer.from('to,n\nlost-1,1\nJos\xe9,2\n', 'latin1'));
    for (const [path, match, message] of [
      [file(desk, 'short.csv', `${long}oops\n`), 'to=args.to', 'line 50003 has 1 fields'],
      [file(desk, 'bad.jsonl', '{"to":"lost-1"}\n{"to":\n'), 'to=args.to', 'line 2 is not JSON'],
      [
        file(desk, 'two.jsonl', '{"to":"lost-2","to":"lost-1"}\n'),
        'to=args.to',
        'line 1 has the name "to" twice',
      ],
      [
        file(desk, 'ok.csv', long),
        'too=args.to',
        'no row has a field "too". Nothing was settled. The rows have: to, n.',
      ],
      [file(desk, 'ok.csv', long), 'to=address', '"address" is not a field that rows can be matched by'],
      [latin, 'to=args.to', 'is not UTF-8 text'],
      [join(desk.folder, 'missing.csv'), 'to=args.to', 'there is no file'],
    ] as const) {
      const { code, stderr } = await desk.semel(['resolve', '--from', path, '--match', match, '--yes']);
      expect(stderr).toContain(message);
      expect(code).toBe(64);
    }
    expect(await openIn(desk)).toEqual(['lost-1']);
  });

  test('one row that fits two records decides about neither', async () => {
    const desk = operator();
    await desk.by(async (_, mail) => {
      await mail.try({ to: 'lost-1', text: 'same' });
      await mail.try({ to: 'lost-2', text: 'same' });
    });
    const path = file(desk, 'one.jsonl', '{"text":"same","to":"lost-2"}\n');
    const loose = await desk.semel(['resolve', '--from', path, '--match', 'text=args.text', '--yes']);
    expect(loose.stderr).toContain('line 1 may match other records too; add a --match');
    expect(await openIn(desk)).toEqual(['lost-1', 'lost-2']);
    const tight = await desk.semel([
      'resolve',
      '--from',
      path,
      '--match',
      'text=args.text',
      ...byTo,
      '--yes',
    ]);
    expect(tight.code).toBe(0);
    expect(await openIn(desk)).toEqual(['lost-1']);
  });
});

describe('a match', () => {
  const record = {
    id: 'abc',
    key: 'mail/-/abc',
    providerKey: 'uuid-1',
    args: { order: 7, 'a.b': 'x', deep: { id: '9' }, none: '', big: 2 ** 60 },
  } as unknown as RecordInfo;

  test('of a column alone is by any name of the record, never by its args', () => {
    const pairs = [pairOf('ref')];
    const faces = recordTexts(record, pairs);
    for (const ref of ['abc', 'mail/-/abc', 'uuid-1']) expect(faces).toContain(rowText({ ref }, pairs));
    expect(faces).not.toContain(rowText({ ref: '7' }, pairs));
  });

  test('of a text with a number is by what is written', () => {
    const pairs = [pairOf('n=args.order')];
    expect(recordTexts(record, pairs)).toEqual([rowText({ n: '7' }, pairs)]);
    expect(recordTexts(record, pairs)).not.toEqual([rowText({ n: '7.0' }, pairs)]);
  });

  test('never matches a missing, empty or inexact value', () => {
    for (const field of ['args.none', 'args.big', 'args.missing', 'remoteRef', 'args.deep'])
      expect(recordTexts(record, [pairOf(`n=${field}`)]), field).toEqual([]);
    expect(rowText({ n: '' }, [pairOf('n')])).toBeUndefined();
    expect(textOf(null)).toBeUndefined();
  });

  test('finds names with dots, and nothing that an object has by nature', () => {
    expect(valueAt(record, 'args.a.b')).toBe('x');
    expect(valueAt(record, 'args.deep.id')).toBe('9');
    expect(valueAt(record, 'args.constructor')).toBeUndefined();
    expect(valueAt('text', 'length')).toBeUndefined();
  });

  test('of several columns needs all of them, and their values do not run into each other', () => {
    const pairs = [pairOf('a=args.order'), pairOf('b=args.deep.id')];
    expect(recordTexts(record, pairs)).toEqual([rowText({ a: 7, b: '9' }, pairs)]);
    expect(recordTexts(record, pairs)).not.toEqual([rowText({ a: '79', b: '' }, pairs)]);
  });
});
