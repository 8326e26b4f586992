// What people see in terminals of 80 and of 120 columns: no broken words, no lines that the terminal has to wrap.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify, stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { eventually, type Place, place } from './place.ts';

/** Runs `semel …` in a pseudo-terminal. */
async function inTerminal(at: Place, line: string, columns = 80): Promise<readonly string[]> {
  const typed = `stty cols ${columns}; ${at.word} ${line}`;
  const { stdout } = await promisify(execFile)('script', ['-qec', typed, '/dev/null'], {
    cwd: at.folder,
    env: { ...at.env, TERM: 'dumb', NO_COLOR: '1' },
  });
  return stdout.trimEnd().split(/\r?\n/);
}

const hasTerminal = process.platform === 'linux' && existsSync('/usr/bin/script');

describe.skipIf(!hasTerminal).each([80, 120])('at %i columns', (columns) => {
  test.each([
    '--help',
    'run --help',
    'once --help',
    'ls --help',
    'mcp --help',
    'doctor --help',
    'resolve --help',
  ])('semel %s breaks between words', async (line) => {
    const at = place();
    const lines = await inTerminal(at, line, columns);
    const isExample = (each: string) => /^ {2}semel /.test(each);
    expect(lines.filter((each) => each.length > columns && !isExample(each))).toEqual([]);
    const whole = await at.semel(line.split(' '));
    // A command to copy breaks at another place in a wider terminal.
    const words = (text: string) => text.split(/\s+/).filter((word) => word !== '' && word !== '\\');
    expect(words(lines.join(' '))).toEqual(words(whole.stdout));
  });

  test('ls, doubt, show, stats and doctor fit', async () => {
    const at = place();
    const fail = ['--', 'sh', '-c', 'echo one two three four five six seven eight nine >&2; exit 28'];
    await at.semel('once', 'mail.welcome.of.a.new.customer', '--id', `lead=${'x y '.repeat(30)}`, fail);
    await at.semel('once', 'mail.goodbye', '--id', 'lead=1', fail);
    await at.semel('once', 'mail.done', '--id', 'lead=2', '--', 'true');
    const [{ ref = '' } = {}] = (await at.json('doubt')) as { ref: string }[];
    for (const line of ['ls', 'doubt', `show ${ref}`, 'stats', 'doctor || true']) {
      const lines = await inTerminal(at, line, columns);
      expect(lines.length).toBeGreaterThan(3);
      // A single word may be longer than the line, such as a key or the ledger's path, and so may a command to copy.
      const isLong = (each: string) => each.length > columns && /\S \S/.test(each.trim().slice(10));
      expect(lines.filter((each) => isLong(each) && !/^ *(?:decide {3})?semel /.test(each))).toEqual([]);
    }
  });

  test('the command that decides can be copied: only a backslash breaks its line', async () => {
    const at = place();
    await at.semel('once', 'mail', '--id', 'lead=1', '--', 'sh', '-c', 'exit 28');
    const [command = 'none'] = /semel resolve \S+@.*/.exec((await at.semel('doubt')).stdout) ?? [];
    const shown = (await inTerminal(at, 'doubt', columns)).join('\n');
    expect(shown.replaceAll(/\\\n +/g, '')).toContain(command.trimEnd());
  });

  test('ls keeps room for the args', async () => {
    const at = place();
    await at.semel('once', 'a.contract.with.a.very.long.name.indeed', '--id', 'lead=1', '--', 'true');
    expect((await inTerminal(at, 'ls', columns)).join('\n')).toContain('{"lead":"1"}');
  });
});

describe.skipIf(!hasTerminal)('demo and ls --watch', () => {
  test.each([80, 120])('demo fits into %i columns', async (columns) => {
    const at = place({ SEMEL_STORE: '' });
    const lines = await inTerminal(at, 'demo --only 2', columns);
    expect(lines.some((line) => line.includes('1 invoice, in doubt'))).toBe(true);
    expect(lines.map(visible).filter((line) => line.length > columns)).toEqual([]);
  });

  test('ls --watch keeps its title and the head of its table when there are more records than lines', async () => {
    const at = place();
    for (let lead = 0; lead < 8; lead += 1)
      await at.semel('once', 'mail', '--id', `lead=${lead}`, '--', 'true');
    const typed = `stty cols 80 rows 8; timeout -s INT 4 ${at.word} ls --watch || true`;
    const { stdout } = await promisify(execFile)('script', ['-qec', typed, '/dev/null'], {
      cwd: at.folder,
      env: { ...at.env, TERM: 'dumb', NO_COLOR: '1' },
    });
    // Each frame begins at the upper left corner.
    const frames = stdout.split('\u001b[H').slice(1);
    expect(frames.length).toBeGreaterThan(0);
    for (const frame of frames) {
      const [title, , head, ...rest] = visible(frame).trimEnd().split(/\r?\n/);
      expect(title).toMatch(/8 records {2}\(Ctrl-C to stop\)/);
      expect(head).toMatch(/^id +/);
      expect(rest.length).toBeLessThanOrEqual(8 - 3);
      expect(rest.at(-1)).toBe('\u2026');
    }
  });
});

/** What stays on the screen of a line. */
function visible(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/[^\n]*\r(?!\n)/g, '');
}

test('a run whose processes were killed is shown as dead, long before its lease ends', async () => {
  const at = place();
  const first = at.start('run', 'job', '--', 'bash', '-c', 'echo $$ >> pids; exec sleep 60');
  const pid = await eventually(() => at.lines('pids')[0]);
  expect((await at.semel('ls')).stdout).not.toContain('dead');
  first.child.kill('SIGKILL');
  await first.ended;
  const rival = await at.semel('run', 'job', '--', 'true');
  expect(rival.stderr).toMatch(
    /by \S+:\d+, which is gone; what it started is still running; nothing was run/,
  );
  process.kill(Number(pid), 'SIGKILL');
  await eventually(async () => (await at.semel('ls')).stdout.includes('running, dead'));
  expect((await at.semel('doubt')).stdout).toContain('whose process is gone: the next call or start notices');
  expect((await at.semel('doctor', '--only', 'DEAD_HOLDER')).stdout).toMatch(
    /^DEAD_HOLDER {2}default\n {2}1 record is held by a process that is gone \(\S+:\d+\): nobody is working on it\.$/m,
  );
});

test('the advice to avoid a doubt is given once, not per group', async () => {
  const at = place();
  await at.semel('once', 'mail', '--id', 'lead=1', '--', 'sh', '-c', 'exit 28');
  await at.semel('once', 'post', '--id', 'lead=1', '--', 'sh', '-c', 'exit 28');
  const { stdout } = await at.semel('doubt');
  expect(
    stdout.match(/to avoid this next time: let --verify <command> of `semel once` ask the target/g),
  ).toHaveLength(1);
  expect(stdout).not.toContain('\n\n\n');
});
