// The library on a Node.js whose SQLite is missing or too old: the machine's own, where it is such a one.

import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { describeUnsupportedNode } from '../../src/core/node-support.ts';
import { ownSchema } from '../servers/own-place.ts';

const root = join(import.meta.dirname, '../..');
const built = join(process.env.SEMEL_BUILT_COMMAND as string, '../..');
const older = findOlderNode();
const onOlder = test.skipIf(older === undefined);
if (older === undefined) console.info('skipped: this machine has no older Node.js than semel supports');

onOlder('a call through Postgres lands once', async () => {
  const { url, schema } = await ownSchema();
  const store = `(await import('${built}/stores/postgres/index.js')).postgresStore({ url: '${url}', schema: '${schema}' })`;
  expect(twice(store)).toEqual({ stdout: 'sent sent 1\n', stderr: '' });
});

onOlder('a call through Redis lands once', () => {
  const url = inject('redisUrl');
  if (url === '') return;
  const store = `(await import('${built}/stores/redis/index.js')).redisStore({ url: '${url}', prefix: 'older-${process.pid}:', durability: 'accept-loss' })`;
  expect(twice(store).stdout).toBe('sent sent 1\n');
});

test('the library uses nothing of the language that Node.js 20 lacks', () => {
  const missing =
    /\b(?:Promise\.(?:withResolvers|try)|(?:Map|Object)\.groupBy|Array\.fromAsync|Iterator\.from|RegExp\.escape|Error\.isError)\b|\.values\(\)\.(?:map|filter|toArray)\(/;
  const ours = globSync('src/**/*.ts', {
    cwd: root,
    exclude: ['**/*.test.ts', 'src/cli/**', 'src/jobs/**', 'src/mcp/proxy/**'],
  });
  const text = (file: string) =>
    readFileSync(join(root, file), 'utf8').replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
  expect(ours.filter((file) => missing.test(text(file)))).toEqual([]);
});

onOlder('only SQLite is refused, when it is opened, in one sentence and what to do', () => {
  const { stdout, stderr } = twice(`'sqlite:${join(built, 'never-made.db')}'`);
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /^STORE_UNSAFE Node v[\d.]+ cannot load node:sqlite\. .*Use Node \^22\.22\.3 or >=24\.15\.0, or pass a better-sqlite3 handle as `database`\.\n$/,
  );
});

/** One effect, called twice by a program on the older Node.js, with this expression for its store. */
function twice(store: string): { stdout: string; stderr: string } {
  const program = `
    import { createSemel } from '${built}/index.js';
    let sent = 0;
    const semel = createSemel({ store: ${store}, namespace: 'older' });
    const mail = () => semel.once('mail', { to: 'x' }, () => ((sent += 1), 'sent'));
    try {
      console.log(await mail(), await mail(), sent);
    } catch (error) {
      console.log(error.code, error.message);
    }
    await semel.close();`;
  const { stdout, stderr } = spawnSync(older as string, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, SEMEL_DRIVERS: root },
  });
  return { stdout, stderr };
}

function findOlderNode(): string | undefined {
  const files = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'));
  return files.find((file) => {
    if (!existsSync(file)) return false;
    const version = spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout.trim().slice(1);
    return Number(version.split('.')[0]) >= 20 && describeUnsupportedNode(version) !== undefined;
  });
}
