// What the command prints of a ledger whose text was written by strangers.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createSemel } from 'semel';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'semel-cli-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = promisify(execFile);
const main = process.env.SEMEL_BUILT_COMMAND as string;

test('doubt prints no control characters, and a command that a shell reads as it is meant', async () => {
  const store = `sqlite:${join(folder, 'the ledger.db')}`;
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
  const { stdout } = await run(process.execPath, [main, 'doubt', ...options]);
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  expect(stdout).not.toContain('\u202e');
  expect(stdout.match(/^ +decide/gm)).toHaveLength(1);
  expect(stdout).toContain(`--namespace '$(touch pwned) it'\\''s' --store 'sqlite:${folder}/the ledger.db'`);

  const { stdout: json } = await run(process.execPath, [main, 'doubt', '--json', ...options]);
  expect(json.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  expect(JSON.parse(json)).toMatchObject([{ args: { text: '\u009b31m red' } }]);
}, 30_000);

test('what is wrong with a file is said without its control characters', async () => {
  const file = join(folder, 'export.csv');
  writeFileSync(file, 'id,\u001b]0;owned\u0007\n1,2\n');
  await createSemel({ store: `sqlite:${join(folder, 'other.db')}`, onWarning: () => undefined }).open();
  const options = ['--store', `sqlite:${join(folder, 'other.db')}`, '--from', file, '--match', 'order'];
  const failed = run(process.execPath, [main, 'resolve', ...options]);
  await expect(failed).rejects.toMatchObject({
    code: 64,
    stderr: expect.stringContaining('The rows have: id, \\u001b]0;owned\\u0007.'),
  });
}, 30_000);
