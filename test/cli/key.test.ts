// `semel key`: the key of a call, and why two calls have one or two.

import { createSemel, day } from 'semel';
import { expect, test } from 'vitest';
import { place } from './place.ts';

const at = place({ SEMEL_STORE: '' });
const { semel, json, storeAt: store, file } = at;

interface Told {
  readonly calls: { key: string; id: string; hints: string[]; record: { status: string } | null }[];
  readonly ledger: boolean;
  readonly comparison: {
    same: boolean;
    conflict: boolean;
    identity: { path: string; hint: string | null }[];
    content: string[];
    ignored: string[];
  } | null;
}

const told = async (...args: string[]) => (await json(['key', ...args])) as Told;

test('the key is the one that the library derives, and the ledger is asked for its record', async () => {
  await using library = createSemel({
    store: store('ledger.db'),
    namespace: 'shop',
    onWarning: () => undefined,
  });
  const mail = library.tool({
    name: 'email.send',
    effect: 'irreversible',
    per: day('Europe/Paris'),
    run: (_: { lead: string }) => 'sent',
  });
  const at = new Date('2026-06-19T22:30:00Z');
  await mail({ lead: '42' }, { at });
  const { key, id } = await library.keyOf(mail, { lead: '42' }, { at });
  const args = [
    'email.send',
    '--id',
    'lead=42',
    '--per',
    'day',
    '--tz',
    'Europe/Paris',
    '--at',
    at.toISOString(),
  ];
  const there = ['--namespace', 'shop', '--store', store('ledger.db')];
  expect(await told(...args, ...there)).toMatchObject({
    ledger: true,
    calls: [{ key, id, record: { status: 'succeeded' } }],
    comparison: null,
  });
  const { stdout } = await semel(['key', ...args, ...there]);
  expect(stdout).toContain(`key         ${key}\n`);
  expect(stdout).toContain('day, Europe/Paris: 2026-06-20, until 2026-06-20T22:00:00.000Z');
  expect(stdout).toContain('identity    {"lead":"42"}');
  expect(stdout).toContain('ledger      succeeded, changed');
});

test('without a ledger it still prints the key, and creates no ledger', async () => {
  const { stdout, code } = await semel(['key', 'deploy', '--id', 'sha=abc', '--store', store('none.db')]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^key +deploy\/-\/[0-9a-z]{32}$/m);
  expect(stdout).toContain('ledger      there is none');
  expect((await semel(['doubt', '--store', store('none.db')])).code).toBe(69);
});

test('a caller’s own key is used as it is, and other args under it are a conflict', async () => {
  const { calls, comparison } = await told('refund', '--key', 'r/1', '--id', 'a=1', '--and', '{"a":"2"}');
  expect(calls.map(({ key }) => key)).toEqual(['refund/=r%2F1', 'refund/=r%2F1']);
  expect(comparison).toMatchObject({ same: true, conflict: true, identity: [{ path: 'a' }] });
});

test('two calls of one intent: which content differs, and what was ignored', async () => {
  const first = file('first.json', '{"lead":42,"body":"Hi","trace":"a"}');
  const second = file('second.json', '{"lead":42,"body":"Hello","trace":"b"}');
  const args = ['mail', '--id-json', first, '--id-json', second, '--identity', 'lead', '--volatile', 'trace'];
  expect((await told(...args)).comparison).toEqual({
    same: true,
    conflict: false,
    identity: [],
    content: ['body'],
    ignored: ['trace'],
  });
  expect((await semel(['key', ...args])).stdout).toContain(
    'One intent: both calls have the same key.\nWorded differently, which changes no key: body.\nDifferent, and ignored: trace.',
  );
});

test('two intents: which field makes them two, and what is likely to be wrong', async () => {
  const first = file('a.json', '{"lead":"Ann@x.org","n":"42","reason":"late"}');
  const { comparison } = await told(
    'mail',
    '--id-json',
    first,
    '--and',
    '{"lead":"ann@X.org","n":42,"reason":"too late"}',
  );
  expect(comparison).toMatchObject({
    same: false,
    identity: [
      { path: 'lead', hint: expect.stringContaining('--normalize lead=email') },
      { path: 'n', hint: expect.stringContaining('a text and a number') },
      { path: 'reason', hint: expect.stringContaining('--content or --volatile') },
    ],
  });
  const merged = await told(
    ...['mail', '--id-json', first, '--and', '{"lead":"ann@X.org ","n":"42","reason":"x"}'],
    ...['--normalize', 'lead=email', '--content', 'reason'],
  );
  expect(merged.comparison).toMatchObject({ same: true, content: ['reason'], ignored: ['lead'] });
});

test.each([
  [['key'], 'expects the name of one contract'],
  [['key', 'mail', '--id', 'lead'], '--id "lead" is not a name with a value'],
  [['key', 'mail', '--id', 'a=1', '--id', 'a=2'], '--id a is given twice'],
  [['key', 'mail', '--and', '{lead}'], '--and is not JSON'],
  [['key', 'mail', '--id-json', 'nowhere.json'], 'there is no file nowhere.json'],
  [['key', 'mail', '--per', 'day', '--tz', 'Mars/Base'], '"Mars/Base" is not a time zone'],
  [['key', 'mail', '--per', 'ever', '--tz', 'UTC'], '--tz has no effect with --per ever'],
  [['key', 'mail', '--per', 'turn'], 'needs a conversation'],
  [['key', 'mail', '--normalize', 'lead=shout'], '--normalize lead=shout is not valid'],
  [['key', 'no name', '--id', 'a=1'], "A contract's name must be"],
])('%j is refused: %s', async (args, sentence) => {
  const { code, stderr, stdout } = await semel(args);
  expect(stderr).toContain(sentence);
  expect([code, stdout]).toEqual([64, '']);
});
