// Completion as the shells do it, and the words that they get from the ledger.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createSemel } from 'semel';
import { beforeAll, describe, expect, test } from 'vitest';
import { positionalsOf, specOf } from '../../src/cli/commands/completion/spec.ts';
import { isPlain, valueOnLine } from '../../src/cli/commands/completion/words.ts';
import { commands } from '../../src/cli/commands/index.ts';
import { main, place } from './place.ts';

const scratch = place();
const { store } = scratch;
const evil = '$(touch pwned)';
let ref = '';

beforeAll(async () => {
  mkdirSync(scratch.path('bin'));
  writeFileSync(scratch.path('bin/semel'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, {
    mode: 0o755,
  });
  for (const namespace of ['shop', evil]) {
    const semel = createSemel({ store, namespace, onWarning: () => undefined });
    await semel.once('mail.send', 1, () => 1);
    await semel.once('mail.send', 2, () => 1);
    await semel.once('post', 1, () => Promise.reject(new Error('reset'))).catch(() => undefined);
    if (namespace === 'shop') ref = (await semel.doubts.list()).items[0]!.ref;
    await semel.close();
  }
  const { stdout } = await scratch.semel('completion', 'bash');
  writeFileSync(scratch.path('script.bash'), stdout);
});

const env = () => ({
  PATH: `${scratch.path('bin')}:${process.env.PATH}`,
  HOME: scratch.folder,
  SEMEL_STORE: store,
  SEMEL_NAMESPACE: 'shop',
});

/** What bash offers for the last of these words. */
function inBash(...words: string[]): string[] {
  const program = `
    source ./script.bash
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"
    _semel
    ((\${#COMPREPLY[@]})) && printf '%s\\n' "\${COMPREPLY[@]}"
    complete -p semel >&2`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', program, 'bash', ...words], {
    cwd: scratch.folder,
    env: env(),
    encoding: 'utf8',
  });
  expect(stderr.trim()).toBe('complete -F _semel semel');
  expect(status).toBe(0);
  return stdout.split('\n').filter((line) => line !== '');
}

describe('bash', () => {
  test('completes the commands', () => {
    expect(inBash('semel', 'do')).toEqual(['doubt', 'doctor']);
    expect(inBash('semel', '')).toEqual(
      expect.arrayContaining([...Object.keys(commands), 'help', '--version']),
    );
    expect(inBash('semel', 'help', 'dem')).toEqual(['demo']);
  });

  test('completes options, and values that are a choice, at their place and nowhere else', () => {
    expect(inBash('semel', 'doubt', '--ex')).toEqual(['--exit-code']);
    expect(inBash('semel', 'demo', '--only', '')).toEqual(['1', '2', '3']);
    expect(inBash('semel', 'demo', '--only', '=')).toEqual(['1', '2', '3']);
    expect(inBash('semel', 'demo', '--only', '=', '2')).toEqual(['2']);
    expect(inBash('semel', 'completion', '')).toEqual(['bash', 'zsh', 'fish']);
    expect(inBash('semel', 'completion', '--store', 'x', 'z')).toEqual(['zsh']);
    expect(inBash('semel', 'completion', '--json', 'bash', '')).toEqual([]);
    expect(inBash('semel', 'doubt', '--older', '')).toEqual([]);
  });

  test('completes files for a store, and after --', () => {
    expect(inBash('semel', 'doubt', '--store', '')).toEqual(['sqlite:']);
    expect(inBash('semel', 'doubt', '--store', 'sqlite', ':', 'ledger.db')).toContain('ledger.db');
    expect(inBash('semel', 'doubt', '--', 'bi')).toEqual(['bin']);
  });

  test('completes contracts and records of the ledger, and never what a shell would run', () => {
    expect(inBash('semel', 'doubt', '--tool', 'ma')).toEqual(['mail.send']);
    expect(inBash('semel', 'resolve', ref.slice(0, 3))).toEqual([ref]);
    expect(inBash('semel', 'doubt', '--namespace', '')).toEqual(['shop']);
    expect(existsSync(scratch.path('pwned'))).toBe(false);
  });
});

const others = [
  { shell: 'zsh', check: ['-n'] },
  { shell: 'fish', check: ['--no-execute'] },
] as const;

describe.each(others)('$shell', ({ shell, check }) => {
  const script = () => execFileSync(process.execPath, [main, 'completion', shell], { encoding: 'utf8' });

  test('knows every command and every option, and leaves no quote open', async () => {
    const text = script();
    for (const load of Object.values(commands)) {
      const { name, flags } = specOf((await load()).default, '');
      expect(text).toMatch(new RegExp(`\\b${name}\\b`));
      for (const flag of flags)
        expect(text).toMatch(new RegExp(shell === 'fish' ? `-l ${flag.name}\\b` : `--${flag.name}\\b`));
    }
    expect(text.split('\n').filter((line) => !line.startsWith('#') && leavesQuoteOpen(line))).toEqual([]);
  });

  test('is read by the shell itself', ({ skip }) => {
    const file = scratch.path(`script.${shell}`);
    writeFileSync(file, script());
    const { status, stderr, error } = spawnSync(shell, [...check, file], { encoding: 'utf8' });
    if (error !== undefined) {
      console.warn(`SKIPPED: there is no ${shell} on this machine, so it could not read the script.`);
      skip(`no ${shell}`);
    }
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });
});

/** Backslashes hide a quote outside quotes; in fish inside them too, where zsh closes and opens again. */
function leavesQuoteOpen(line: string): boolean {
  return (line.replaceAll(/\\\\/g, '').replaceAll(/\\'/g, '').match(/'/g) ?? []).length % 2 === 1;
}

test('a command’s usage determines its completions', () => {
  const choices = (...words: string[]) => ({ type: 'choices', choices: words });
  expect(positionalsOf('bash|zsh|fish')).toEqual([choices('bash', 'zsh', 'fish')]);
  expect(positionalsOf('<id@fence> <verdict> [-m note] [options]')).toEqual([
    { type: 'ledger', words: 'refs' },
    { type: 'free' },
  ]);
  expect(positionalsOf('<job> [options] -- <command> [args]')).toEqual([{ type: 'free' }]);
  expect(positionalsOf('[<file>…] [options]')).toEqual([{ type: 'file' }]);
  expect(positionalsOf('<id> on|off')).toEqual([{ type: 'ledger', words: 'records' }, choices('on', 'off')]);
  expect(positionalsOf('[options]')).toEqual([]);
});

test('the typed line names its ledger, and only plain words of it are used', () => {
  const line = 'semel doubt --store sqlite:a.db --namespace=@my/shop --tool ';
  expect([valueOnLine(line, 'store'), valueOnLine(line, 'namespace'), valueOnLine(line, 'tool')]).toEqual([
    'sqlite:a.db',
    '@my/shop',
    undefined,
  ]);
  expect(valueOnLine("semel doubt --store 'sqlite:my ledger.db' --tool ", 'store')).toBeUndefined();
  for (const word of ['$(x)', 'a b', '-rf', '`x`', 'a;b', '*', '~', '']) expect(isPlain(word)).toBe(false);
});

test('without a ledger there are no completions, and an unknown shell is an error', async () => {
  const nowhere = { SEMEL_STORE: '', XDG_STATE_HOME: scratch.path('bin') };
  const run = scratch.with({ env: nowhere, cwd: scratch.path('bin') }).semel;
  expect(await run(['completion', '--words', 'contracts'])).toMatchObject({ code: 69, stdout: '' });
  expect(await run(['completion', 'tcsh'])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('bash|zsh|fish'),
  });
  expect(await run(['completion'])).toMatchObject({ code: 64 });
  expect(readdirSync(scratch.path('bin'))).toEqual(['semel']);
});
