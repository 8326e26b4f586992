// Alerts on doubt: each doubt once to each target, signed, retried, and closed when it is decided.

import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { shellWord } from '../../src/core/visible.ts';
import { createSemel } from '../../src/create-semel.ts';
import { standardWebhooks } from '../../src/http/index.ts';
import { storeAt } from '../../src/semel/index.ts';
import { delayAfter, maxAttempts } from '../../src/signals/alerts/schedule.ts';
import { slackMessage } from '../../src/signals/alerts/slack.ts';
import {
  type Alert,
  commandTarget,
  createWatch,
  describeEvent,
  makeSecret,
  readSecrets,
  slackTarget,
  type Target,
  webhookTarget,
} from '../../src/signals/index.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../cli/place.ts';
import { receiver } from './receiver.ts';

async function ledger(own?: Store) {
  const folder = mkdtempSync(join(tmpdir(), 'semel-alerts-'));
  const store = own ?? (await storeAt(`sqlite:${join(folder, 'ledger.db')}`, {}));
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  onTestFinished(async () => {
    await semel.close({ grace: 0 });
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const refund = semel.tool({
    name: 'refund',
    effect: 'irreversible',
    per: 'ever',
    identity: ['payment'],
    lease: '1s',
    run: ({ payment, fails }: { payment: string; fails?: boolean }) => {
      if (fails !== false) throw new Error(`socket hang up <${payment}>`);
      return 'ok';
    },
  });
  const alerts: Alert[] = [];
  const warnings: string[] = [];
  const watch = (targets: readonly Target[], more: { olderMs?: number; namespace?: string } = {}) => {
    const made = createWatch({
      store,
      targets,
      namespace: more.namespace,
      needsDecision: ({ inDoubt }) => inDoubt,
      olderMs: more.olderMs ?? 0,
      optionsFor: (namespace) => `--namespace ${namespace}`,
      url: 'https://ledger.example.com/ui',
      onAlert: (alert) => void alerts.push(alert),
      onWarning: (message) => void warnings.push(message),
    });
    onTestFinished(() => made.close());
    return made;
  };
  return { folder, store, semel, refund, watch, alerts, warnings };
}

const secret = makeSecret();
const secrets = readSecrets(secret);

test('a doubt is sent once as a signed CloudEvent, and once more when it is decided', async () => {
  const { semel, refund, watch } = await ledger();
  const { url, got } = await receiver();
  const watcher = watch([webhookTarget(url, secrets)]);
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });

  await refund.try({ payment: 'pay_1' });
  expect(await watcher.pass()).toEqual({ sent: 1, unsent: 0 });
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });
  const [first] = got;
  const { items } = await semel.doubts.list();
  const [record] = items;
  expect(first?.headers['content-type']).toBe('application/cloudevents+json');
  expect(first?.event).toMatchObject({
    specversion: '1.0',
    id: `${record?.id}.1.opened`,
    source: '/semel/shop',
    type: 'dev.semel.doubt.opened',
    subject: record?.id,
    data: {
      record: record?.id,
      namespace: 'shop',
      tool: 'refund',
      ref: record?.ref,
      attempts: 1,
      error: 'socket hang up <pay_1>',
      show: `semel show ${record?.id} --namespace shop`,
      resolve: `semel resolve ${record?.ref} landed/not-landed/run-again/abandon --namespace shop`,
      link: `https://ledger.example.com/ui?namespace=shop&q=${record?.id}`,
    },
  });
  expect(first?.event.timestamp).toBe(first?.event.time);
  // Neither args nor results.
  expect(Object.keys(first?.event.data ?? {})).not.toContain('args');

  const id = first?.headers['webhook-id'];
  expect(id).toBe(first?.event.id);
  const signed = `${id}.${first?.headers['webhook-timestamp']}.${first?.body}`;
  const hmac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'));
  expect(first?.headers['webhook-signature']).toBe(`v1,${hmac.update(signed).digest('base64')}`);
  // Our own receiver takes it.
  const source = standardWebhooks({ name: 'semel', secret });
  const headers = new Headers(first?.headers as Record<string, string>);
  expect(source.verify({ headers, body: Buffer.from(first?.body ?? ''), now: Date.now() } as never)).toBe(
    true,
  );

  await semel.doubts.resolve(record?.ref as string, 'landed', { by: 'ann' });
  expect(await watcher.pass()).toEqual({ sent: 1, unsent: 0 });
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });
  expect(got.length).toBe(2);
  expect(got[1]?.event).toMatchObject({
    type: 'dev.semel.doubt.resolved',
    id: `${record?.id}.1.resolved`,
    data: { outcome: 'landed', by: 'ann' },
  });
  expect(got[1]?.event.data).not.toHaveProperty('resolve');
});

test('doubts of every namespace are found, unless one is named', async () => {
  const { store, refund, watch } = await ledger();
  const other = createSemel({ store, namespace: 'other', onWarning: () => undefined });
  await refund.try({ payment: 'pay_1' });
  await expect(
    other.once('pay', 1, () => {
      throw new Error('cut');
    }),
  ).rejects.toThrow('cut');
  const { url, got } = await receiver();
  expect(await watch([webhookTarget(`${url}2`, secrets)], { namespace: 'shop' }).pass()).toMatchObject({
    sent: 1,
  });
  expect(await watch([webhookTarget(url, secrets)]).pass()).toMatchObject({ sent: 2 });
  expect(got.map(({ event }) => event.data.namespace)).toEqual(['shop', 'shop', 'other']);
});

test('a verifier that finds nothing out does not alarm again; a decision to run again ends the doubt', async () => {
  const { semel, watch } = await ledger();
  const mail = semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    run: (_: { to: string }) => {
      throw new Error('timeout');
    },
    verify: () => ({ state: 'unknown' }) as never,
  });
  const { url, got } = await receiver();
  const watcher = watch([webhookTarget(url, secrets)]);
  await mail.try({ to: 'ann' });
  await watcher.pass();
  const [before] = (await semel.doubts.list()).items;
  await mail.try({ to: 'ann' });
  await semel.doubts.sweep();
  const [after] = (await semel.doubts.list()).items;
  expect(after?.fence).toBeGreaterThan(before?.fence as number);
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });
  expect(got.length).toBe(1);
  await semel.doubts.resolve(after?.ref as string, 'runAgain');
  await watcher.pass();
  expect(got[1]?.event).toMatchObject({ type: 'dev.semel.doubt.resolved', data: { outcome: 'run again' } });
  // In doubt again: another one.
  await mail.try({ to: 'ann' });
  await watcher.pass();
  expect(got.map(({ event }) => event.type.split('.').at(-1))).toEqual(['opened', 'resolved', 'opened']);
});

test('a failed delivery is tried again with the same webhook-id, later and not sooner', async () => {
  const { refund, watch, alerts } = await ledger();
  const { url, got } = await receiver((_, count) => (count < 2 ? 500 : 200));
  const watcher = watch([webhookTarget(url, secrets)]);
  await refund.try({ payment: 'pay_1' });
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 1 });
  expect(alerts[0]).toMatchObject({ error: expect.stringContaining('500'), target: new URL(url).origin });
  expect(alerts[0]?.again).toBeInstanceOf(Date);
  // Another watcher keeps to the schedule too.
  expect(await watch([webhookTarget(url, secrets)]).pass()).toEqual({ sent: 0, unsent: 1 });
  expect(got.length).toBe(1);
  await eventually(async () => (await watcher.pass()).sent === 1, 'the second delivery');
  expect(got.map(({ headers }) => headers['webhook-id'])).toEqual([got[0]?.event.id, got[0]?.event.id]);
});

test('a target that does not answer holds up neither others nor more than one alert at a time', async () => {
  const { refund, watch } = await ledger();
  const slow = await receiver(() => (response) => response.destroy());
  const well = await receiver();
  const watcher = watch([webhookTarget(slow.url, secrets), webhookTarget(well.url, secrets)]);
  for (const payment of ['a', 'b', 'c']) await refund.try({ payment });
  expect(await watcher.pass()).toEqual({ sent: 3, unsent: 3 });
  expect(slow.got.length).toBe(1);
  expect(well.got.length).toBe(3);
});

test('redirects are not followed, and an endless answer ends nothing', async () => {
  const { refund, watch } = await ledger();
  const thief = await receiver();
  const { url } = await receiver(() => (response) => {
    response.writeHead(307, { location: thief.url }).end();
  });
  const endless = await receiver(() => (response) => {
    response.writeHead(200);
    const more = setInterval(() => response.write('x'.repeat(65_536)), 1);
    response.on('close', () => clearInterval(more));
  });
  await refund.try({ payment: 'pay_1' });
  const report = await watch([webhookTarget(url, secrets), webhookTarget(endless.url, secrets)]).pass();
  expect(report).toEqual({ sent: 1, unsent: 1 });
  expect(thief.got).toEqual([]);
});

test('410 disables the target, for every watcher, until it is enabled', async () => {
  const { refund, watch, warnings } = await ledger();
  let status = 410;
  const { url, got } = await receiver(() => status);
  const target = () => [webhookTarget(url, secrets)];
  await refund.try({ payment: 'pay_1' });
  await watch(target()).pass();
  expect(warnings.join()).toContain('answered 410');
  await refund.try({ payment: 'pay_2' });
  status = 200;
  const watcher = watch(target());
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });
  expect(got.length).toBe(1);
  await watcher.enable();
  await eventually(async () => (await watcher.pass()) && got.length === 3, 'both alerts');
});

test('two watchers at once send each doubt once', async () => {
  const { refund, watch } = await ledger();
  const { url, got } = await receiver();
  for (let n = 0; n < 20; n += 1) await refund.try({ payment: `pay_${n}` });
  const [one, other] = [watch([webhookTarget(url, secrets)]), watch([webhookTarget(url, secrets)])];
  await Promise.all([one.pass(), other.pass(), one.pass(), other.pass()]);
  await one.pass();
  expect(got.length).toBe(20);
  expect(new Set(got.map(({ event }) => event.id)).size).toBe(20);
});

test('the end of a doubt is sent where only the answer to its alert was lost', async () => {
  const { semel, refund, watch } = await ledger();
  const { url, got } = await receiver((_, count) => (count === 1 ? (response) => response.destroy() : 204));
  await refund.try({ payment: 'pay_1' });
  expect(await watch([webhookTarget(url, secrets)]).pass()).toEqual({ sent: 0, unsent: 1 });
  const [record] = (await semel.doubts.list()).items;
  await semel.doubts.resolve(record?.ref as string, 'landed');
  const watcher = watch([webhookTarget(url, secrets)]);
  expect(await watcher.pass()).toEqual({ sent: 1, unsent: 0 });
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });
  const id = `${record?.id}.1`;
  expect(got.map(({ event }) => event.id)).toEqual([`${id}.opened`, `${id}.resolved`]);
});

test('what is decided before it could be sent is not sent', async () => {
  const { semel, refund, watch } = await ledger();
  const { url, got } = await receiver(() => 500);
  const watcher = watch([webhookTarget(url, secrets)]);
  await refund.try({ payment: 'pay_1' });
  await watcher.pass();
  const [record] = (await semel.doubts.list()).items;
  await semel.doubts.resolve(record?.ref as string, 'landed');
  expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });
  expect(got.length).toBe(1);
});

test('younger doubts than asked for are left to the next call', async () => {
  const { refund, watch } = await ledger();
  const { url } = await receiver();
  await refund.try({ payment: 'pay_1' });
  expect(await watch([webhookTarget(url, secrets)], { olderMs: 3_600_000 }).pass()).toEqual({
    sent: 0,
    unsent: 0,
  });
});

test('a doubt whose call is tried again and again grows old', async () => {
  let aheadMs = 0;
  const time = () => ({
    wall: Date.now() + aheadMs,
    mono: performance.now() + aheadMs,
    boot: 'b',
    steady: true,
  });
  const store = { ...memoryStore({ time }), close: async () => undefined };
  const { watch } = await ledger(store);
  const semel = createSemel({ store, namespace: 'shop', onWarning: () => undefined });
  const pay = semel.tool({
    ...{ name: 'pay', effect: 'irreversible', per: 'ever' },
    provider: { name: 'shop.pay', window: '60d', sentBy: 'tool' },
    run: (_: { to: string }) => {
      throw new Error('timeout');
    },
  });
  const { url } = await receiver();
  const watcher = watch([webhookTarget(url, secrets)], { olderMs: 300_000 });
  for (let minute = 0; minute < 5; minute += 1) {
    await pay.try({ to: 'ann' });
    expect(await watcher.pass()).toEqual({ sent: 0, unsent: 0 });
    aheadMs += 60_000;
  }
  await pay.try({ to: 'ann' });
  expect(await watcher.pass()).toEqual({ sent: 1, unsent: 0 });
  await semel.close({ grace: 0 });
});

test('a command gets the event on its standard input; one that fails is tried again', async () => {
  const { folder, refund, watch } = await ledger();
  await refund.try({ payment: 'pay_1' });
  const file = join(folder, 'seen');
  expect(await watch([commandTarget(`cat >> '${file}'`)]).pass()).toEqual({ sent: 1, unsent: 0 });
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ type: 'dev.semel.doubt.opened' });
  expect(await watch([commandTarget('exit 3')]).pass()).toEqual({ sent: 0, unsent: 1 });
});

test('the ledger keeps no address of a target', async () => {
  const { folder, store, refund, watch } = await ledger();
  const { url } = await receiver();
  await refund.try({ payment: 'pay_1' });
  await watch([slackTarget(`${url}&token=canary`), commandTarget('true # canary')]).pass();
  await store.close();
  for (const name of ['ledger.db', 'ledger.db-wal'])
    expect(readFileSync(join(folder, name), { flag: 'a+' }).includes('canary')).toBe(false);
});

test("a Slack message shows what is known and what to type, and strangers' text is only text", () => {
  const doubt = {
    ...{
      id: 'abc.1',
      namespace: 'shop',
      tool: 'refund',
      key: 'refund/=1',
      ref: 'abc@1',
      fence: 1,
      attempts: 2,
    },
    openedAt: '2026-11-18T10:00:00.000Z',
    error: '<!channel> *bold* `code` <https://evil.example|click> & \u202e\nnext',
  };
  const wording = { optionsFor: () => '--namespace shop', url: 'https://ledger.example.com' };
  const message = JSON.stringify(slackMessage(describeEvent('opened', doubt, wording)));
  expect(message).toContain('semel show abc --namespace shop');
  expect(message).toContain('semel resolve abc@1 landed/not-landed/run-again/abandon --namespace shop');
  expect(message).toContain('<https://ledger.example.com/?namespace=shop&amp;q=abc|Open in the dashboard>');
  expect(message).not.toContain('<!channel>');
  expect(message).not.toContain('<https://evil');
  expect(message).not.toContain('\u202e');
});

test('a command in a Slack message runs nothing that a namespace says', () => {
  const namespace = 'shop`;touch$IFS/tmp/x;`';
  const doubt = {
    ...{ id: 'abc.1', namespace, tool: 'refund', key: 'refund/=1', ref: 'abc@1', fence: 1, attempts: 1 },
    ...{ openedAt: '2026-11-18T10:00:00.000Z', error: 'lost' },
  };
  const wording = { optionsFor: (name: string) => `--namespace ${shellWord(name)}` };
  const message = JSON.stringify(slackMessage(describeEvent('opened', doubt, wording)));
  // With another mark in place of the backtick, the quoted word would end before the semicolon.
  expect(message).not.toContain("--namespace 'shop'");
  expect(message).toContain('run `semel doubt`');
});

test('the schedule is that of Standard Webhooks: ten attempts in about three days', () => {
  const delays = Array.from({ length: maxAttempts }, (_, n) => delayAfter(n + 1, 'a'));
  expect(delays.at(-1)).toBeUndefined();
  expect(delays[0]).toBeLessThan(6_000);
  const total = delays.slice(0, -1).reduce<number>((sum, each) => sum + (each as number), 0);
  expect(total / 86_400_000).toBeGreaterThan(2.7);
  expect(total / 86_400_000).toBeLessThan(3.5);
  expect(delayAfter(3, 'a')).toBe(delayAfter(3, 'a'));
});

test('addresses that are not http, or hold a password, are refused; so is a weak secret', () => {
  for (const address of ['file:///etc/passwd', 'nonsense', 'ftp://a/b', 'https://ann:pw@example.com'])
    expect(() => webhookTarget(address, secrets)).toThrow('The address');
  for (const text of ['', 'whsec_', 'whsec_c2hvcnQ=', 'secret'])
    expect(() => readSecrets(text)).toThrow('whsec_');
  expect(readSecrets(`${makeSecret()}\n${makeSecret()}\n`).length).toBe(2);
});
