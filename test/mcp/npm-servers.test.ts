// Servers as npm has them, unchanged: a guarded write is called twice, and the world is looked at.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { stdioClient } from './clients.ts';
import { proxyPlace } from './proxy.ts';

const require = createRequire(import.meta.url);
const replayed = 'dev.semel/replayed';

function serverOf(name: string): string {
  const manifest = require.resolve(`@modelcontextprotocol/${name}/package.json`);
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: Record<string, string> };
  return join(dirname(manifest), Object.values(bin)[0] as string);
}

test('server-filesystem: what is not idempotent lands once, what is runs each time, what reads passes', async () => {
  const here = proxyPlace();
  const root = here.path('root');
  mkdirSync(root);
  const a = join(root, 'a.txt');
  const command = here.command([], [process.execPath, serverOf('server-filesystem'), root]);
  const client = await stdioClient('v1', command, here.env);
  for (const content of ['one', 'one', 'two']) await client.call('write_file', { path: a, content });
  expect(readFileSync(a, 'utf8')).toBe('two');

  // Twice by hand it would be a+b+b.
  writeFileSync(a, 'a');
  const edit = { path: a, edits: [{ oldText: 'a', newText: 'ab' }] };
  await client.call('edit_file', edit);
  expect((await client.call('edit_file', edit))._meta?.[replayed]).toBe(true);
  expect(readFileSync(a, 'utf8')).toBe('ab');

  const move = { source: a, destination: join(root, 'b.txt') };
  await client.call('move_file', move);
  const again = await client.call('move_file', move);
  expect(again.isError).not.toBe(true);
  expect(readdirSync(root)).toEqual(['b.txt']);
  expect((await client.call('list_directory', { path: root }))._meta?.[replayed]).toBeUndefined();
});

test('server-memory: an observation is added once', async () => {
  const here = proxyPlace({ MEMORY_FILE_PATH: '' });
  const env = { ...here.env, MEMORY_FILE_PATH: here.path('memory.jsonl') };
  const command = here.command([], [process.execPath, serverOf('server-memory')]);
  const client = await stdioClient('v1', command, env);
  const entities = [{ name: 'ann', entityType: 'person', observations: [] }];
  const first = await client.call('create_entities', { entities });
  const second = await client.call('create_entities', { entities });
  expect(second.structuredContent).toEqual(first.structuredContent);
  expect(second._meta?.[replayed]).toBe(true);
  const observations = [{ entityName: 'ann', contents: ['likes tea'] }];
  for (const _ of [1, 2]) await client.call('add_observations', { observations });
  expect(readFileSync(here.path('memory.jsonl'), 'utf8').match(/likes tea/g)).toHaveLength(1);
});

test('server-everything: its tools are listed and called as without the proxy', async () => {
  const here = proxyPlace();
  const direct = [process.execPath, serverOf('server-everything')];
  const [bare, through] = [
    await stdioClient('v1', direct, here.env),
    await stdioClient('v1', here.command([], direct), here.env),
  ];
  expect(await through.tools()).toEqual(await bare.tools());
  const echo = { message: 'é\u{1f600}' };
  expect(await through.call('echo', echo)).toEqual(await bare.call('echo', echo));
  const toggle = 'toggle-simulated-logging';
  const on = await through.call(toggle, {});
  const twice = await through.call(toggle, {});
  expect(on.content[0]?.text).toBe(twice.content[0]?.text);
  expect(twice._meta?.[replayed]).toBe(true);
});
