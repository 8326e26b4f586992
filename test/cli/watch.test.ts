// `semel watch` as a process: alerts that outlive kills, for doubts that a kill has left.

import { existsSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { receiver } from '../signals/receiver.ts';
import { operator } from './operator.ts';
import { eventually, until } from './place.ts';

test('a doubt that a killed process left is found when its lease is over, and its decision too', async () => {
  const desk = operator();
  const { url, got } = await receiver();
  const effect = desk.start(
    'once',
    'pay',
    '--id',
    'n=1',
    '--lease',
    '10s',
    '--',
    'sh',
    '-c',
    `touch begun; ${until('never')}`,
  );
  await eventually(() => existsSync(desk.path('begun')), 'the effect');
  effect.child.kill('SIGKILL');
  await effect.ended;
  const watch = desk.start('watch', '--webhook', url, '--every', '1s', '--json');
  await eventually(() => got.length === 1, 'the alert');
  expect(got[0]?.event).toMatchObject({
    type: 'dev.semel.doubt.opened',
    data: { namespace: 'shop', tool: 'pay' },
  });
  const resolve = String(got[0]?.event.data.resolve).replace('landed/not-landed/run-again/abandon', 'landed');
  expect((await desk.semel(resolve.split(' ').slice(1))).code).toBe(0);
  await eventually(() => got.length === 2, 'the end');
  expect(got[1]?.event).toMatchObject({ type: 'dev.semel.doubt.resolved', data: { outcome: 'landed' } });
  watch.child.kill('SIGTERM');
  expect(await watch.ended).toMatchObject({ code: 0 });
  // The secret that it made is the owner's alone.
  expect(statSync(desk.path('state/semel/webhook.secret')).mode & 0o777).toBe(0o600);
  // Records of alerts are not records of calls.
  expect(JSON.stringify(await desk.json('ls'))).not.toContain('doubt.opened');
});

test('a watcher that is killed between sending and recording sends again, under the same id, and then no more', async () => {
  const desk = operator();
  await desk.by((_, mail) => mail.try({ to: 'lost-1' }));
  let kill: () => void = () => undefined;
  const { url, got } = await receiver((_, count) => {
    if (count > 1) return 204;
    // It has arrived, and nobody will know.
    kill();
    return 'hang';
  });
  const first = desk.start('watch', '--webhook', url);
  kill = () => first.child.kill('SIGKILL');
  expect((await first.ended).signal).toBe('SIGKILL');
  const again = desk.start('watch', '--webhook', url, '--every', '1s');
  await eventually(() => got.length === 2, 'the second delivery');
  again.child.kill('SIGTERM');
  await again.ended;
  expect((await desk.semel('watch', '--webhook', url, '--once')).code).toBe(0);
  expect(got.length).toBe(2);
  expect(got[0]?.headers['webhook-id']).toBe(got[1]?.headers['webhook-id']);
});

test('two watchers that are killed and started again deliver every doubt, and none that was recorded twice', async () => {
  const desk = operator();
  const { url, got } = await receiver();
  await desk.by(async (_, mail) => {
    for (let n = 0; n < 30; n += 1) await mail.try({ to: `lost-${n}` });
  });
  const started = [1, 2].map(() => desk.start('watch', '--webhook', url, '--every', '1s'));
  await eventually(() => got.length >= 10, 'some alerts');
  for (const { child } of started) child.kill('SIGKILL');
  await Promise.all(started.map(({ ended }) => ended));
  const ids = () => new Set(got.map(({ event }) => event.id));
  await eventually(
    async () => (await desk.semel('watch', '--webhook', url, '--once')).code === 0 && ids().size === 30,
  );
  // Each kill can repeat the one alert that was being sent.
  expect(got.length).toBeLessThanOrEqual(32);
});

test('--once is for cron: exit code 1 while an alert could not be sent, the command gets the event', async () => {
  const desk = operator();
  await desk.by((_, mail) => mail.try({ to: 'lost-1' }));
  const { url } = await receiver(() => 500);
  const failed = await desk.semel('watch', '--slack', `@${desk.file('slack', `${url}\n`)}`, '--once');
  expect(failed).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/not sent to Slack .*500.*tried again in/),
  });
  expect(failed.stderr).not.toContain('secret=1');
  const sent = await desk.semel('watch', '--exec', `cat >> ${desk.path('seen')}`, '--once');
  expect(sent).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^mail\.send \w+@1 is in doubt: sent to the command$/m),
  });
  expect((await desk.semel('watch', '--exec', `cat >> ${desk.path('seen')}`, '--once')).stdout).toBe('');
  expect(desk.lines('seen').map((line) => JSON.parse(line).data.tool)).toEqual(['mail.send']);
});

test('what nobody would get, or could not be sent, is refused at once', async () => {
  const desk = operator();
  await desk.by((_, mail) => mail.try({ to: 'ann' }));
  expect(await desk.semel('watch')).toMatchObject({ code: 64, stderr: expect.stringContaining('--webhook') });
  expect(await desk.semel('watch', '--webhook', 'ftp://example.com')).toMatchObject({ code: 64 });
  expect(await desk.semel('watch', '--exec', 'true', '--url', 'nowhere')).toMatchObject({ code: 64 });
  const secret = desk.with({ env: { SEMEL_WEBHOOK_SECRET: 'short' } });
  expect(await secret.semel('watch', '--webhook', 'http://127.0.0.1:9/')).toMatchObject({ code: 64 });
});
