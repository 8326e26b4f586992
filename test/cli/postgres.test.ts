// The commands on a ledger that is not a file: pipes in the state of the user, all namespaces, runs without a slot.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { ownSchema } from '../servers/own-place.ts';
import { mailOf } from './operator.ts';
import { eventually, kernel, place, until } from './place.ts';

async function there() {
  const { url, schema } = await ownSchema();
  return place({
    SEMEL_DRIVERS: join(import.meta.dirname, '../..'),
    SEMEL_STORE: `${url}?schema=${schema}&durability=accept-loss`,
  });
}

test('a job without a period runs at every start, one at a time, and a crash leaves no doubt', async () => {
  const at = await there();
  const effect = ['run', 'sync', '-q', '--', 'sh', '-c', 'echo x >> effects'];
  for (const runs of [1, 2]) {
    expect((await at.semel(effect)).code).toBe(0);
    expect(at.lines('effects')).toHaveLength(runs);
  }
  const script = `echo $$ >> pids; ${until('go')}`;
  const crashed = at.start('run', 'sync', '-q', '--', 'sh', '-c', script);
  const pid = Number(await eventually(() => at.lines('pids')[0]));
  expect(existsSync(at.path(`state/semel/live/${kernel}`))).toBe(true);
  crashed.child.kill('SIGKILL');
  await crashed.ended;
  expect((await at.semel(effect)).code).toBe(0);
  expect(at.lines('effects')).toHaveLength(2);
  writeFileSync(at.path('go'), '');
  await eventually(() => !existsSync(`/proc/${pid}`));
  expect((await at.semel(effect)).code).toBe(0);
  expect(at.lines('effects')).toHaveLength(3);
  expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
  expect((await at.semel('ls', '--status', 'failed', '--json')).json()).toHaveLength(1);
});

test('--at-least holds the lock for every machine, and the clock of the server ends it', async () => {
  const at = await there();
  const effect = ['run', 'sync', '-q', '--json', '--wait', '1m', '--', 'sh', '-c', 'echo x >> effects'];
  await at.semel('run', 'sync', '-q', '--at-least', '1h', '--id', 'a=1', '--', 'true');
  // Another machine has its own state, and knows nothing of the processes of this one.
  const other = at.with({ env: { XDG_STATE_HOME: at.path('elsewhere') } });
  const skipped = await other.semel('run', 'sync', '--json', '--id', 'a=1', '--', 'true');
  expect(JSON.parse(skipped.stderr)).toMatchObject({ status: 'skipped', reason: 'at-least' });
  await at.semel('run', 'sync', '-q', '--at-least', '2s', '--', 'true');
  expect((await other.semel(effect)).code).toBe(0);
  expect(at.lines('effects')).toHaveLength(1);
});

test('a doubt of the library is found and resolved without naming its namespace', async () => {
  const at = await there();
  await using semel = createSemel({
    store: at.env.SEMEL_STORE as string,
    namespace: 'app',
    prune: false,
    onWarning: () => undefined,
  });
  await mailOf(semel).try({ to: 'lost-1' });
  expect((await at.semel('doubt', '--exit-code')).code).toBe(1);
  const [{ ref }] = (await at.semel('doubt', '--json')).json() as [{ ref: string }];
  expect((await at.semel('resolve', ref, 'landed', '--result', '1')).code).toBe(0);
  expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
});

test('a printed command does not override the address in the environment by one without its password', async () => {
  const at = await there();
  const address = (at.env.SEMEL_STORE as string).replace(/\/\/([^:@/]+)(:[^@/]*)?@/, '//$1:secret@');
  await using app = createSemel({
    store: address,
    namespace: 'app',
    prune: false,
    onWarning: () => undefined,
  });
  await mailOf(app).try({ to: 'lost-1' });
  const { stdout } = await at.with({ env: { SEMEL_STORE: address } }).semel('doubt');
  expect(stdout).toMatch(/semel resolve \S+ landed\/\S+ --namespace app$/m);
  const named = await at.semel('doubt', '--store', address);
  expect(named.stdout).toMatch(/semel resolve .* --namespace app --store '?postgres:/);
  expect(stdout + named.stdout).not.toContain('secret');
});
