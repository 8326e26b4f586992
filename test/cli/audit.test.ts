// `semel audit`: repeats in a log, by a real process.

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { main, place } from './place.ts';

const at = place({ SEMEL_STORE: '' });
const { semel, json, file } = at;

const log = file(
  'calls.jsonl',
  [
    '{"ts":"2026-06-19T09:00:00Z","msg":"worker started"}',
    '{"ts":"2026-06-19T09:00:01Z","tool":"mail.send","args":{"lead":42,"body":"Hi"},"key":"k1"}',
    '{"ts":"2026-06-19T09:00:05Z","tool":"mail.send","args":{"lead":43,"body":"Hi"},"key":"k2"}',
    '{"ts":"2026-06-19T09:00:06Z","tool":"search","args":"{\\"q\\":\\"x\\"}"}',
    '{"ts":"2026-06-19T09:00:07Z","tool":"search","args":"{ \\"q\\": \\"x\\" }"}',
    'a line that is no JSON',
    '{"ts":"2026-06-19T09:02:00Z","msg":"restarting the worker"}',
    '{"ts":"2026-06-19T09:02:03Z","tool":"mail.send","args":{"lead":42,"body":"Hello"},"key":"k3"}',
    '{"ts":"2026-06-19T09:02:10Z","tool":"mail.send","args":{"lead":44,"body":"\\u001b[2J"},"key":"k2"}',
    '',
  ].join('\n'),
);

test('repeats are found by the fields that were named, the most suspicious first', async () => {
  const { code, stdout } = await semel(['audit', log, '--same', 'tool,args.lead', '--within', '5m']);
  expect(code).toBe(1);
  expect(stdout).toContain('1 of 4 calls look like repeats; 1 within 30s of a restart.');
  expect(stdout).toContain(
    '2× mail.send  ["mail.send",42]\n   2026-06-19T09:00:01.000Z line 2, +2m2s line 8\n',
  );
  expect(stdout).toContain('under 2 keys: the key is wrong; 1 right after a restart (line 7)');
  expect(stdout).toContain('1 key was used for different calls');
  expect(stdout).toContain("mail.send: identity: ['lead']");
});

test('missing options are guessed and reported; args inside a string are parsed; nothing is printed raw', async () => {
  const { code, stdout } = await semel(['audit', log]);
  expect(code).toBe(1);
  expect(stdout).toContain('2 of 6 calls look like repeats; 1 within 30s of a restart.');
  expect(stdout).toContain(
    'The same: tool, args (guessed; text such as `body` may differ; name the fields with --same)',
  );
  expect(stdout).toMatch(/2× mail\.send {2}\["mail\.send",\{"lead":42\}\].*in 2 wordings/s);
  expect(stdout).toContain('2× search  ["search",{"q":"x"}]');
  expect(stdout).toContain('Could not be read: 1 line (6).');
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});

test('one mail in three wordings and one order refunded three times are found without naming fields', async () => {
  const times = ['00', '20', '40'];
  const calls = times.flatMap((second, n) => [
    { tool: 'mail.send', args: { to: 'ann', body: ['Hi', 'Hello', 'Dear Ann'][n] } },
    { tool: 'refund', args: { order: 17, reason: `reason ${n}`, requested_at: second } },
    { tool: 'post', args: { text: `post ${n}` } },
  ]);
  const lines = calls.map((call, n) => JSON.stringify({ ts: `2026-06-19T09:00:${10 + n}Z`, ...call }));
  const found = await json(['audit', file('worded.jsonl', lines.join('\n'))]);
  expect(found).toMatchObject({
    repeats: 4,
    groups: [
      { count: 3, wordings: 3 },
      { count: 3, wordings: 3 },
    ],
  });
  const table = [
    'time,recipient,template,body',
    ...times.map((s, n) => `2026-06-19T09:00:${s}Z,ann,welcome,hi ${n}`),
  ];
  const csv = await json(['audit', file('worded.csv', table.join('\n'))]);
  expect(csv).toMatchObject({
    repeats: 2,
    groups: [{ wordings: 3 }],
    compared: { same: ['recipient', 'template'] },
  });
});

test('prints the same as JSON', async () => {
  expect(await json(['audit', log, '--same', 'tool,args.lead', '--within', '5m'])).toMatchObject({
    summary: '1 of 4 calls look like repeats; 1 within 30s of a restart.',
    calls: 4,
    repeats: 1,
    nearRestart: 1,
    unreadableLines: [6],
    compared: { same: ['tool', 'args.lead'], key: 'key', withinMs: 300_000, guessed: ['time', 'key'] },
    groups: [
      {
        name: 'mail.send',
        count: 2,
        keys: ['k1', 'k3'],
        calls: [{ line: 2 }, { line: 8 }],
        restart: { line: 7 },
      },
    ],
    reuses: [{ key: 'k2', calls: [{ line: 3 }, { line: 9 }] }],
    suggestions: [{ contract: 'mail.send', identity: ['lead'] }],
  });
});

test('a log without repeats is quiet: exit code 0', async () => {
  const { code, stdout } = await semel([
    'audit',
    log,
    '--same',
    'tool,args.lead',
    '--within',
    '1m',
    '--key',
    'none',
  ]);
  expect(code).toBe(0);
  expect(stdout).toContain('None of 4 calls looks like a repeat.');
  expect(stdout).toContain('the key none, which no call has.');
});

test('one kind of line can be named where a call has two', async () => {
  const pairs = ['a', 'b', 'c'].flatMap((id, n) =>
    ['started', 'done'].map((status) =>
      JSON.stringify({ ts: 1781859600 + n, tool: 'mail', args: { id }, status }),
    ),
  );
  const path = file('pairs.jsonl', pairs.join('\n'));
  expect((await semel(['audit', path])).stdout).toContain('--where status=done');
  expect((await semel(['audit', path, '--where', 'status=done'])).code).toBe(0);
});

test('CSV is read as RFC 4180 has it, from standard input too', async () => {
  const csv = [
    'time,recipient,template,key',
    '2026-06-19 09:00:00,a@x.org,"wel,come",1',
    '2026-06-19 09:00:01,a@x.org,"wel,come",2',
    '"2026-06-19 09:00:02",b@x.org,"two',
    'lines ""quoted""",3',
    '2026-06-19 09:00:03,too short',
    '2026-06-19 09:00:04,b@x.org,"two',
    'lines ""quoted""",4',
  ];
  const { code, stdout } = await at
    .with({ input: csv.join('\r\n') })
    .semel('audit', '-', '--same', 'recipient,template');
  expect(code).toBe(1);
  expect(stdout).toContain('2 of 4 calls look like repeats.');
  expect(stdout).toContain('line 2, +1s line 3');
  expect(stdout).toContain('line 4, +2s line 7');
  expect(stdout).toContain('Could not be read: 1 line (6).');
});

test.each([
  [['audit'], '', 'expects one file'],
  [['audit', 'nowhere.jsonl'], '', 'there is no file nowhere.jsonl'],
  [['audit', '-'], 'hello\nworld\n', 'no line is a JSON object or a CSV row'],
  [['audit', '-'], '{"tool":"mail","args":{}}\n', 'no field holds a time'],
  [['audit', '-'], '{"ts":1781859600,"msg":"hello"}\n', 'cannot guess which fields identify a call'],
  [
    ['audit', '-', '--same', 'tool,args.laed'],
    '{"ts":1781859600,"tool":"mail","args":{"lead":1}}\n',
    'no line has all of tool, args.laed, ts. The lines have: ts, tool, args.',
  ],
  [['audit', '-', '--within', 'soon'], '', '--within "soon" is not a duration'],
  [['audit', '-', '--restart', '('], '', '--restart is not a regular expression'],
  [['audit', '-', '--where', 'done'], '', '--where "done" is not a name with a value'],
  [['audit', '-', '--limit', '0'], '', 'Write a whole number from 1 to 10000'],
])('%j with %j is refused: %s', async (args, input, sentence) => {
  const { code, stderr, stdout } = await at.with({ input }).semel(args);
  expect(stderr).toContain(sentence);
  expect([code, stdout]).toEqual([64, '']);
});

test.each([
  ['in the line', (deep: string) => deep],
  ['in a text of it', (deep: string) => JSON.stringify(deep)],
])('a line that is nested without end, %s, does not hide the repeats of the others', async (_, args) => {
  const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
  const line = (ts: number, of: string) => `{"ts":${1_781_000_000_000 + ts},"tool":"pay","args":${of}}`;
  const lines = [line(1, '{"to":1}'), line(2, args(deep)), line(3, args(deep)), line(4, '{"to":1}')];
  const { code, stdout } = await semel(['audit', file('deep.jsonl', lines.join('\n'))]);
  expect([code, stdout]).toEqual([1, expect.stringContaining('2× pay')]);
});

test('fewer long lines are kept until the compared fields are known', async () => {
  const small = at.with({ env: { NODE_OPTIONS: '--max-old-space-size=700' } });
  const long = `[${'{},'.repeat(300_000)}{}]`;
  const line = (n: number) => `{"ts":${1_781_000_000_000 + n},"tool":"pay","args":{"list":${long}}}\n`;
  const log = file('long.jsonl', Array.from({ length: 80 }, (_, n) => line(n)).join(''));
  const { code, stdout } = await small.semel('audit', log);
  expect([code, stdout]).toEqual([1, expect.stringContaining('79 of 80 calls look like repeats')]);
});

test('a start-up without times is skipped, however long its lines are', async () => {
  const small = at.with({ env: { NODE_OPTIONS: '--max-old-space-size=150' } });
  const log = file('untimed.jsonl', `{"tool":"pay","prompt":"${'x'.repeat(500_000)}"}\n`.repeat(400));
  const { code, stderr } = await small.semel('audit', log);
  expect([code, stderr]).toEqual([64, expect.stringContaining('no field holds a time')]);
});

test('hundreds of thousands of lines that cannot be read end as one does', async () => {
  const { code, stderr } = await semel(['audit', file('short.csv', `a,b\n${'x\n'.repeat(300_000)}`)]);
  expect([code, stderr]).toEqual([64, expect.stringMatching(/no field holds a time|no line is/)]);
});

test.each([
  [
    'a short key of a long row',
    'ts,tool,args,key,more',
    (nth: number, long: string) => `mail.send,to ${nth},the key of call ${nth},${long}`,
  ],
  ['a long key', 'ts,tool,args,key', (nth: number, long: string) => `mail.send,to ${nth},${nth}${long}`],
])('%s takes no more memory than a short one of a short row', async (_, head, row) => {
  const long = 'x'.repeat(50_000);
  const child = spawn(process.execPath, ['--max-old-space-size=100', main, 'audit', '-'], {
    env: at.env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const rows = function* () {
    yield `${head}\n`;
    for (let nth = 0; nth < 5_000; nth += 1)
      yield `${new Date(1.8e12 + nth).toISOString()},${row(nth, long)}\n`;
  };
  const written = pipeline(rows(), child.stdin).catch(() => undefined);
  expect(await text(child.stdout)).toContain('5,000 calls');
  await written;
});
