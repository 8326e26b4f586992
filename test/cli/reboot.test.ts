// `semel run --cron @reboot`: once per boot of this machine.

import { hostname } from 'node:os';
import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { leaveClaim } from '../../src/semel/index.ts';
import { bootId } from '../../src/store/boot.ts';
import { eventually, place } from './place.ts';

const reboot = ['--cron', '@reboot'];
const effect = ['--', 'sh', '-c', 'echo "$SEMEL_SLOT $SEMEL_ATTEMPT" >> effects'];
const machine = hostname().replace(/[^A-Za-z0-9.-]+/g, '-');
const slot = `${machine}-boot-${bootId()?.slice(0, 8)}`;

test('a job is done once per boot, under a name that says which machine and boot', async () => {
  const at = place();
  await at.semel('run', 'warm-up', reboot, '--', 'sh', '-c', 'exit 3');
  for (const spelling of ['@reboot', ' @Reboot'])
    expect((await at.semel('run', 'warm-up', '--cron', spelling, effect)).code).toBe(0);
  expect(at.lines('effects')).toEqual([`${slot} 2`]);
  const said = await at.semel('run', 'warm-up', reboot, effect);
  expect(said.stderr).toContain(`warm-up ${slot} was already done`);
  // The zone only names the date.
  await at.semel('run', 'warm-up', reboot, '--tz', 'Asia/Tokyo', effect);
  await at.semel('run', 'warm-up', reboot, '--id', 'disk=b', effect);
  expect(at.lines('effects')).toEqual([`${slot} 2`, `${slot} 1`]);
});

test('effects and steps inside belong to the boot, across attempts', async () => {
  const at = place();
  const script = `${at.word} once mail -- sh -c 'echo x >> mails'; test "$SEMEL_ATTEMPT" = 2`;
  for (const code of [1, 0])
    expect((await at.semel('run', 'warm-up', reboot, '--', 'sh', '-c', script)).code).toBe(code);
  expect(at.lines('mails')).toHaveLength(1);
});

test('a run that an earlier boot of this machine cut off is closed by the next one without --after-failure hold, and another machine’s is not', async () => {
  const at = place();
  const earlier = createSemel({ store: at.store, namespace: 'default', onWarning: () => undefined });
  const run = earlier.tool({
    name: 'run.service',
    effect: 'irreversible',
    per: 'ever',
    lease: '1s',
    timeout: 'none',
    share: true,
    run: (_: object) => undefined,
  });
  const names = [`${machine}-boot-00000000`, 'elsewhere-boot-00000000'];
  const claimed = await Promise.all(
    names.map((name) => earlier.begin(run, { job: 'service', per: 'boot', slot: name, start: name })),
  );
  expect(claimed).toMatchObject([{ execute: true }, { execute: true }]);
  // Its processes are gone: nobody renews the leases.
  const keys = (await earlier.records.list()).items.map(({ key }) => key);
  for (const each of claimed) if (each.execute) await leaveClaim(each.attempt, 1);
  await eventually(async () => (await earlier.records.list()).items.every(({ lapsed }) => lapsed));
  const hold = ['--after-failure', 'hold'];
  await at.semel('run', 'service', reboot, hold, '--', 'sh', '-c', 'exit 3');
  expect((await earlier.doubts.list()).items).toHaveLength(3);
  await at.semel('run', 'service', reboot, '--again', 'a person looked', effect);
  const after = await Promise.all(keys.map((key) => earlier.records.get(key)));
  const stateOf = (name: string) =>
    after.find((record) => (record?.args as { slot: string } | undefined)?.slot === name);
  expect(stateOf(names[0] as string)).toMatchObject({ status: 'failed', inDoubt: false });
  expect(stateOf(names[1] as string)).toMatchObject({ inDoubt: true });
  expect(at.lines('effects')).toHaveLength(1);
  await earlier.close({ grace: 0 });
});

test('@reboot with --at is refused, since it has no scheduled time', async () => {
  const at = place();
  const said = await at.semel('run', 'warm-up', reboot, '--at', '2026-06-19T07:00:00Z', effect);
  expect(said.stderr).toContain('@reboot is not scheduled at a time');
  expect(said.code).not.toBe(0);
  expect(at.lines('effects')).toEqual([]);
});
