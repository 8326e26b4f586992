// An operator who names no namespace sees all of them: the library writes into the application's own.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel } from 'semel';
import { beforeAll, expect, test } from 'vitest';
import { rootsNamespace } from '../../src/semel/index.ts';
import { mailOf } from './operator.ts';
import { place } from './place.ts';

const at = place();

async function work(namespace: string, ...boxes: string[]): Promise<void> {
  await using semel = createSemel({ store: at.store, namespace, prune: false, onWarning: () => undefined });
  for (const to of boxes) await mailOf(semel).try({ to }, { key: to });
}

beforeAll(async () => {
  await at.semel('once', 'mail.send', '--id', 'to=ann', '--', 'true');
  await work('app', 'lost-1', 'ann', 'no-one');
  await work('api', 'ann');
});

test('a doubt of the library is found without naming its namespace, and by the exit code', async () => {
  const { code, stdout } = await at.semel('doubt', '--exit-code');
  expect(code).toBe(1);
  expect(stdout).toContain('mail.send: socket hang up  (app)');
  expect(stdout).toMatch(/semel resolve \S+@\d+ landed\/not-landed\/run-again\/abandon --namespace app/);
  // With a namespace only that one is meant, by flag or by environment.
  const named = await at.semel('doubt', '--exit-code', '--namespace', 'default');
  expect([named.code, named.stdout]).toEqual([0, 'Nothing is in doubt in default.\n']);
  const chosen = await at.with({ env: { SEMEL_NAMESPACE: 'api' } }).semel('doubt', '--exit-code');
  expect(chosen.code).toBe(0);
  const none = await at.semel('doubt', '--tool', 'nothing');
  expect(none.stdout).toBe('Nothing of nothing is in doubt in api, app and default.\n');
});

test('ls and stats count all of them, and show each namespace', async () => {
  const { stdout } = await at.semel('ls');
  expect(stdout).toMatch(/^id +namespace +contract/);
  expect((await at.semel('ls', '--json')).json().map(({ namespace }) => namespace)).toHaveLength(5);
  expect((await at.semel('ls', '--json', '--namespace', 'api')).json()).toHaveLength(1);
  const stats = (await at.semel('stats', '--json')).json<{
    records: number;
    doubts: { open: number };
    contracts: readonly { namespace: string; contract: string }[];
  }>();
  expect(stats).toMatchObject({ records: 5, doubts: { open: 1 } });
  expect(stats.contracts.map(({ namespace }) => namespace).toSorted()).toEqual(['api', 'app', 'default']);
  expect((await at.semel('stats')).stdout).toMatch(/^mail\.send +app +2 /m);
});

test('a record is named by its id alone; a key that two namespaces have is refused', async () => {
  const [refused] = (await at.semel('ls', '--json', '--status', 'failed')).json();
  const { id } = refused as { id: string };
  expect((await at.semel('show', id)).stdout).toMatch(/namespace +app/);
  expect((await at.semel('retry', id)).code).toBe(0);
  const twice = await at.semel('show', 'mail.send/=ann');
  expect(twice.code).toBe(64);
  expect(twice.stderr).toContain('matches records in api and app');
  expect((await at.semel('show', 'mail.send/=ann', '--namespace', 'api')).code).toBe(0);
  const nothing = await at.semel('show', 'zzzzzz');
  expect(nothing.stderr).toContain('There is no record zzzzzz in api, app and default.');
  expect((await at.semel('forget', 'mail.send/=ann', '--namespace', 'api', '--yes')).code).toBe(0);
});

test('what is exported without naming a namespace arrives in the namespaces that it came from', async () => {
  const { stdout } = await at.semel('export');
  const file = at.file('all.jsonl', stdout);
  const there = ['--store', at.storeAt('copy.db')];
  expect((await at.semel('import', file, there)).code).toBe(0);
  const arrived = (await at.semel('ls', '--json', there)).json().map(({ namespace }) => namespace);
  expect(new Set(arrived)).toEqual(new Set(['app', 'default']));
  const named = await at.semel('import', file, there, '--namespace', 'app');
  expect(named.code).toBe(64);
  expect(named.stderr).toContain('the file has records of namespace "api", not "app"');
});

test('a doubt of another namespace is resolved by its ref, or in a group', async () => {
  await work('app', 'lost-2');
  await work('api', 'lost-3');
  const [first] = (await at.semel('doubt', '--json')).json() as { ref: string; namespace: string }[];
  const one = await at.semel('resolve', first!.ref, 'landed', '--result', '1');
  expect(one.code).toBe(0);
  const group = await at.semel('resolve', '--tool', 'mail.send', 'abandon', '-m', 'too old', '--yes');
  expect(group.stdout).toContain('2 settled, 0 refused.');
  expect(group.stderr).toContain('(api)');
  expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
});

test('doctor finds two applications in one namespace, with the lines that settle it', async () => {
  const shared = { store: at.storeAt('shared.db'), prune: false, onWarning: () => undefined };
  await using semel = createSemel({ ...shared, namespace: 'app' });
  await semel.once('mail', 1, () => 1);
  await using roots = createSemel({ ...shared, namespace: rootsNamespace('app') });
  for (const root of ['/srv/one', '/srv/two']) await roots.once('semel.root', root, () => 'host');
  const there = ['--store', shared.store];
  const { code, stdout } = await at.semel('doctor', '--only', 'NAMESPACE_SHARED', there);
  expect(code).toBe(1);
  expect(stdout).toMatch(/\/srv\/one since \S+, \/srv\/two since \S+ use app/);
  expect(stdout).toContain("createSemel({ namespace: 'two' })");
  const [, ref] = /semel forget (\S+) --namespace 'app \(roots\)'/.exec(stdout) ?? [];
  expect((await at.semel('forget', ref as string, '--namespace', 'app (roots)', '--yes', there)).code).toBe(
    0,
  );
  expect((await at.semel('doctor', '--only', 'NAMESPACE_SHARED', there)).code).toBe(0);
});

test('the same effect by hand and by cron, from the folders of two applications, is done once', async () => {
  const one = place();
  const line = ['once', 'report', '--id', 'day=1', '--', 'sh', '-c', `echo ran >> '${one.path('ran')}'`];
  for (const name of ['shop', 'office']) {
    mkdirSync(one.path(name));
    writeFileSync(join(one.path(name), 'package.json'), JSON.stringify({ name }));
    expect((await one.with({ cwd: one.path(name) }).semel(...line)).code).toBe(0);
  }
  expect(readFileSync(one.path('ran'), 'utf8')).toBe('ran\n');
});
