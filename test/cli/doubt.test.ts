// `semel doubt`: what needs a decision, what will need one, and the words that settle it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { contractLine, errorMatcher, groupCommand, groupsOf } from '../../src/cli/commands/doubt/groups.ts';
import type { RecordInfo } from '../../src/semel/index.ts';
import { operator } from './operator.ts';
import { eventually } from './place.ts';

test('a group has one command that settles it, one contract line, and its members oldest first', async () => {
  const desk = operator();
  await desk.by(async (_, mail) => {
    for (const to of ['lost-1', 'cut-1', 'lost-2', 'ann']) await mail.try({ to });
  });
  const { code, stdout } = await desk.semel(['doubt']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^2 × mail.send: socket hang up$/m);
  expect(stdout.indexOf('"lost-1"')).toBeLessThan(stdout.indexOf('"lost-2"'));
  expect(stdout.indexOf('"lost-2"')).toBeLessThan(stdout.indexOf('"cut-1"'));
  expect(stdout).toContain(
    `all of them: semel resolve --tool mail.send --error 'socket hang up' landed/not-landed/run-again/abandon --namespace shop --store ${desk.store}`,
  );
  expect(stdout).toContain(
    'to avoid this next time: provider in the contract if the target takes an idempotency key, otherwise verify, ' +
      'which asks the target (semel once: --verify <command>; semel mcp: `errors` in the policy file)',
  );
  expect(stdout).not.toContain('running now');

  const listed = (await desk.semel(['doubt', '--json'])).json();
  expect(listed.map(({ args }) => (args as { to: string }).to)).toEqual(['lost-1', 'cut-1', 'lost-2']);
  expect((await desk.semel(['doubt', '--exit-code'])).code).toBe(1);
  expect((await desk.semel(['doubt', '--exit-code', '--older', '10m'])).code).toBe(0);
  expect((await desk.semel(['doubt', '--exit-code', '--tool', 'other'])).code).toBe(0);
  expect(await desk.semel(['doubt', 'mail.send'])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('semel doubt --tool mail.send'),
  });
});

test('a line that decides, pasted with all its verdicts, decides nothing and asks for one', async () => {
  const desk = operator();
  await desk.by((_, mail) => mail.try({ to: 'lost-1' }));
  const { stdout } = await desk.semel(['doubt']);
  const [, line = ''] = /^ {4}decide {3}semel (.*)$/m.exec(stdout) ?? [];
  expect(line).toContain('run-again');
  expect(line).not.toMatch(/[|<>;&]/); // a shell would run the part before it, and that decides
  expect(await desk.semel(line.split(' '))).toMatchObject({
    code: 64,
    stderr: expect.stringMatching(/is not a verdict.*landed, not-landed, run-again, abandon or died/s),
  });
  expect((await desk.semel(['doubt', '--exit-code'])).code).toBe(1);
});

test('a killed run and its step alarm nobody; an effect in it is shown with its run', async () => {
  const desk = operator();
  const program = join(desk.folder, 'nightly.mjs');
  writeFileSync(
    program,
    `import { createSemel, day } from ${JSON.stringify(join(import.meta.dirname, '../../src/index.ts'))};
const semel = createSemel({ store: ${JSON.stringify(desk.store)}, namespace: 'shop' });
const hang = () => {
  process.stdout.write('begun');
  return new Promise(() => setInterval(() => {}, 1000));
};
const job = semel.job(process.argv[2] === 'step' ? 'report' : 'digest', { per: day('UTC') }, (run) =>
  process.argv[2] === 'step' ? run.step('count', hang) : run.once('mail', hang),
);
await job.run();`,
  );
  const kill = async (at: string) => {
    const victim = spawn(process.execPath, [program, at], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(victim.stdout, 'data');
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    for (const { ref } of (await desk.semel(['ls', '--status', 'running', '--json'])).json())
      await desk.semel(['resolve', `${ref}`, 'died']);
  };

  await kill('step');
  const first = await desk.semel(['doubt', '--exit-code']);
  expect(first.code).toBe(0);
  expect(first.stdout).toContain('nothing to decide: the next start of the job');
  expect(first.stdout).not.toMatch(/step\.count|decide {3}semel resolve|to avoid this next time/);
  expect((await desk.semel(['doctor'])).stdout).not.toContain('DOUBT_BACKLOG');
  expect((await desk.semel(['ls'])).stdout).toMatch(/step\.count report@\d{4}-\d\d-\d\d {2,}in doubt/);

  await kill('once');
  const second = await desk.semel(['doubt', '--exit-code']);
  expect(second.code).toBe(1);
  expect(second.stdout).toMatch(/^ {4}run {6}digest@\d{4}-\d\d-\d\d/m);
  expect(second.stdout).toContain('to avoid this next time');
  expect((await desk.semel(['doctor'])).stdout).toContain('1 record is in doubt');
});

test('what a killed process had dispatched is listed at once, and its lease need not be waited for', async () => {
  const desk = operator();
  const program = join(desk.folder, 'victim.mjs');
  writeFileSync(
    program,
    `import { createSemel } from ${JSON.stringify(join(import.meta.dirname, '../../src/index.ts'))};
const semel = createSemel({ store: ${JSON.stringify(desk.store)}, namespace: 'shop' });
await semel.once('deploy', 7, { lease: '10m' }, () => {
  process.stdout.write('begun');
  return new Promise(() => setInterval(() => {}, 1000));
});`,
  );
  const victim = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(victim.stdout, 'data');
  victim.kill('SIGKILL');
  await once(victim, 'exit');

  const before = await desk.semel(['doubt', '--exit-code']);
  expect(before.code).toBe(1);
  expect(before.stdout).not.toMatch(/Nothing is in doubt|running now/);
  const [, ref = ''] =
    /^ {2}(\w+@\S+) {2}its process died after it had dispatched: in doubt for /m.exec(before.stdout) ?? [];
  expect(before.stdout).toContain(`decide   semel resolve ${ref} died --namespace shop`);
  expect((await desk.semel(['doubt', '--json'])).json()).toMatchObject([
    { ref, status: 'running', processGone: true },
  ]);
  expect((await desk.semel(['doubt', '--exit-code', '--older', '1h'])).code).toBe(0);
  expect((await desk.semel(['show', ref, '--json'])).json<object>()).toMatchObject({
    record: { ref, status: 'running' },
  });
  const died = await desk.semel(['resolve', ref, 'died']);
  expect(died.stdout).toMatch(/deploy {2}in doubt. Decide: semel resolve \w+@2 landed\/not-landed/);
  const after = await desk.semel(['doubt', '--exit-code']);
  expect(after.code).toBe(1);
  expect(after.stdout).toMatch(/^deploy: The process that ran it died\.$/m);
  expect(after.stdout).not.toContain('running now');
});

test('a killed `semel once` whose command is gone too is listed at once, and an agent sees no verdict', async () => {
  const desk = operator();
  const script = 'echo $$ > pid; exec sleep 60';
  const { child, ended } = desk.start('once', 'pay', '--id', 'n=1', '--', 'sh', '-c', script);
  const pid = Number(await eventually(() => desk.lines('pid')[0], 'the command'));
  child.kill('SIGKILL');
  await ended;
  expect(await desk.semel('doubt', '--exit-code')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('1 running now'),
  });
  process.kill(pid, 'SIGKILL');
  await eventually(async () => (await desk.semel('doubt', '--exit-code')).code === 1, 'the doubt');
  expect((await desk.semel('doubt', '--tool', 'pay')).stdout).toMatch(
    /^ {4}decide {3}semel resolve \S+ died /m,
  );
  const agent = desk.with({ env: { SEMEL_AGENT: '1' } });
  expect((await agent.semel('doubt')).stdout).not.toContain('semel resolve');
});

test('an unknown namespace warns on stderr and names those with records', async () => {
  const desk = operator();
  await desk.by((_, mail) => mail.try({ to: 'lost-1' }));
  const { code, stdout, stderr } = await desk.semel([
    'doubt',
    '--exit-code',
    '--json',
    '--namespace',
    'shpo',
  ]);
  expect(code).toBe(0);
  expect(stdout).toBe('[]\n');
  expect(stderr).toContain('no records in the namespace shpo. This ledger has some in: shop (1 in doubt)');
});

describe('groups', () => {
  const at = new Date('2026-06-19T09:00Z');
  const record = (error: string | undefined, more: Partial<RecordInfo> = {}) =>
    ({
      contract: 'mail',
      inDoubt: true,
      updatedAt: at,
      ...(error === undefined ? {} : { error: { code: 'IN_DOUBT', message: error, retriable: false } }),
      ...more,
    }) as RecordInfo;

  test('the command of a group means this group and no other', () => {
    const errors = ['timeout', 'timeout at a*b', 'a timeout', "it's cut", 'cut\u001b[2J\nhere', undefined];
    for (const error of errors) {
      const [group] = groupsOf([record(error)], at.getTime());
      // What a shell makes of the word.
      const [, word = ''] =
        /--error ((?:'[^']*'|\\'|[\w./:@-]+)+) landed/.exec(groupCommand(group!, '')) ?? [];
      const pattern = word.replaceAll("'\\''", '\0').replaceAll("'", '').replaceAll('\0', "'");
      expect(errors.filter((other) => errorMatcher(pattern)(record(other)))).toEqual([error]);
    }
  });

  test('a long error is cut, and still finds its group', () => {
    const error = `${'x'.repeat(500)} end`;
    const [group] = groupsOf([record(error)], at.getTime());
    expect(groupCommand(group!, '').length).toBeLessThan(300);
    expect(errorMatcher(`${'x'.repeat(160)}*`)(record(error))).toBe(true);
  });

  test('* matches any text, and is the only wildcard', () => {
    const matches = (pattern: string, text: string) => errorMatcher(pattern)(record(text));
    expect(matches('time*', 'timeout')).toBe(true);
    expect(matches('*out', 'timeout')).toBe(true);
    expect(matches('t*m*t', 'timeout')).toBe(true);
    expect(matches('*', 'timeout')).toBe(true);
    expect(matches('time', 'timeout')).toBe(false);
    expect(matches('out*', 'timeout')).toBe(false);
    expect(matches('timeout*out', 'timeout')).toBe(false);
    expect(matches('t.*', 'timeout')).toBe(false);
  });

  test('the line of the contract fits the error', () => {
    const line = (...members: RecordInfo[]) => contractLine(groupsOf(members, at.getTime())[0]!);
    expect(line(record('EAUTH: no login'))).toContain("classify: { EAUTH: 'notLanded' }");
    // It may have arrived, so the table must not say otherwise.
    expect(line(record('ECONNRESET: read'))).toMatch(/^provider/);
    expect(line(record('cut'))).toMatch(/^provider/);
    expect(line(record('cut', { providerKey: 'k' }))).toMatch(/^verify/);
  });
});
