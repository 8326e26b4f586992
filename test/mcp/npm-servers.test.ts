// Servers as npm has them, unchanged: a guarded write is called twice, and the world is looked at.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { atTheEnd } from '../cli/place.ts';
import { stdioClient } from './clients.ts';
import { serverOf } from './npm-server.ts';
import { isQuestion, proxyPlace } from './proxy.ts';

const replayed = 'dev.semel/replayed';

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
  expect(isQuestion(await client.call('edit_file', edit))).toBe(true);
  expect(readFileSync(a, 'utf8')).toBe('ab');

  const move = { source: a, destination: join(root, 'b.txt') };
  await client.call('move_file', move);
  const again = await client.call('move_file', move);
  expect(isQuestion(again)).toBe(true);
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
  expect(isQuestion(second)).toBe(true);
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
  expect(await through.tools()).toEqual([...(await bare.tools()), 'semel_run_again']);
  const echo = { message: 'é\u{1f600}' };
  expect(await through.call('echo', echo)).toEqual(await bare.call('echo', echo));
  const toggle = 'toggle-simulated-logging';
  const on = await through.call(toggle, {});
  const twice = await through.call(toggle, {});
  expect(twice.content.at(-1)?.text).toBe(on.content[0]?.text);
  expect(isQuestion(twice)).toBe(true);
});

/** A GitLab as far as an issue goes; the third one is made, and the reply to it is lost. */
async function gitlab(): Promise<{ readonly url: string; readonly issues: string[] }> {
  const issues: string[] = [];
  const ann = { id: 1, username: 'ann', name: 'Ann', avatar_url: '', web_url: '' };
  const server = createServer(async (request, response) => {
    const { title } = (await json(request)) as { title: string };
    const id = issues.push(title);
    if (id === 3) return void request.socket.destroy();
    const at = '2026-01-01T00:00:00Z';
    const people = { author: ann, assignees: [], labels: [], milestone: null };
    const times = { created_at: at, updated_at: at, closed_at: null };
    const issue = { id, iid: id, project_id: 7, title, description: '', state: 'opened', web_url: '' };
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ ...issue, ...people, ...times }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atTheEnd(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v4`, issues };
}

test('server-gitlab, which annotates nothing: an issue is opened once, also where the reply was lost', async () => {
  const { url, issues } = await gitlab();
  const here = proxyPlace();
  const env = { ...here.env, GITLAB_API_URL: url, GITLAB_PERSONAL_ACCESS_TOKEN: 'glpat-secret' };
  const policy = here.policy({ create_issue: { effect: 'write-non-idempotent', content: ['description'] } });
  const server = [process.execPath, serverOf('server-gitlab')];
  const open = (description: string, title = 'It is broken') => ({ project_id: '7', title, description });

  const bare = await stdioClient('v1', here.command([], server), env);
  for (const _ of [1, 2]) await bare.call('create_issue', open('Since today.', 'Without a policy'));
  expect(issues).toEqual(['Without a policy']);

  const through = await stdioClient('v1', here.command(['--policy', policy], server), env);
  await through.call('create_issue', open('Since today.'));
  const again = await through.call('create_issue', open('As of today, it is broken.'));
  expect(again.content[0]?.text).toMatch(/yours differs in description/);
  expect(issues).toEqual(['Without a policy', 'It is broken']);

  const lost = open('The reply to this is lost.', 'Lost');
  await expect(through.call('create_issue', lost)).rejects.toThrow();
  expect((await through.call('create_issue', lost)).content[0]?.text).toMatch(/failed on .*socket hang up/);
  expect(issues).toHaveLength(3);
});
