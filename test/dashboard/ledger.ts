// A ledger with something of everything for the dashboard: what landed days ago, replays, doubts of two kinds, jobs and hostile texts.

import { DatabaseSync } from 'node:sqlite';
import { type Clock, systemClock } from '../../src/core/clock.ts';
import { createSemel, day, type Semel } from '../../src/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { transaction } from '../outbox/sqlite-place.ts';

export const hostile = {
  html: '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script>',
  bidi: 'safe\u202Egnp.exe\u2066',
  huge: 'A'.repeat(8_000),
};

const dayMs = 86_400_000;

function semelAt(path: string, agoMs: number): Semel {
  const clock: Clock = { ...systemClock, now: () => Date.now() - agoMs };
  const boot = agoMs === 0 ? {} : { clock, machine: { bootId: () => `boot ${agoMs}` } };
  const store = sqliteStore({ path, ...boot });
  return createSemel({ store, namespace: 'shop', prune: false, clock, onWarning: () => undefined });
}

function toolsOf(semel: Semel) {
  const refund = semel.tool({
    name: 'refund',
    effect: 'irreversible',
    per: 'ever',
    identity: ['payment'],
    run: async ({ payment }: { payment: string; amount: string; reason: string }, ctx) => {
      if (payment.startsWith('lost')) throw new Error('socket hang up');
      ctx.note(`re_${payment.replaceAll('-', '0')}Qk3PZ2x8`);
      return { id: `re_${payment}`, status: 'succeeded' };
    },
  });
  const mail = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    identity: ['to', 'template'],
    run: async ({ to }: { to: string; template: string; body?: string; apiKey?: string }) => {
      if (to.startsWith('slow')) throw new Error('timeout of 10000ms exceeded');
      return { messageId: `<${to}>` };
    },
  });
  return { refund, mail };
}

/** Earlier days, oldest first: a ledger's clock does not go back. */
export async function fillPast(path: string): Promise<void> {
  for (let ago = 9; ago >= 1; ago -= 1) {
    const semel = semelAt(path, ago * dayMs);
    const { refund, mail } = toolsOf(semel);
    for (let n = 0; n < 14 + ((ago * 7) % 11); n += 1) {
      await refund({ payment: `p-${ago}-${n}`, amount: '19.90', reason: 'broken' });
      if (n % 2 === 0) await mail({ to: `c${n}@example.com`, template: `day-${ago}` });
      for (let m = 0; m < (n * ago) % 4; m += 1)
        await refund({ payment: `p-${ago}-${n}`, amount: '19.90', reason: 'arrived broken' });
    }
    const at = new Date(Date.now() - ago * dayMs);
    if (ago !== 4) await semel.job('digest', { per: day('UTC') }, async () => 'sent').run({ at });
    const isBad = ago === 6;
    const sync = semel.job('crm-sync', { per: day('UTC') }, async () => {
      if (isBad) throw new Error('the CRM answered 500');
      return 'synced';
    });
    await sync.run({ at }).catch(() => undefined);
    await semel.close();
  }
}

export interface Today {
  /** Without the hostile texts: for pictures. */
  readonly isHarmless?: boolean;
}

export async function fillNow(path: string, { isHarmless = false }: Today = {}): Promise<void> {
  const semel = semelAt(path, 0);
  const { refund, mail } = toolsOf(semel);
  await refund(
    { payment: 'p-1', amount: '19.90', reason: 'broken' },
    { toolCallId: 'call_8f31c2', conversation: 'c-77', turn: 't-1' },
  );
  await refund(
    { payment: 'p-1', amount: '19.90', reason: 'it arrived broken' },
    { toolCallId: 'call_9d02aa', conversation: 'c-77', turn: 't-2' },
  );
  for (let n = 1; n <= 3; n += 1)
    await refund({ payment: `lost-${n}`, amount: `${n}9.00`, reason: 'never arrived' }).catch(
      () => undefined,
    );
  for (const to of ['slow@example.com', 'slower@example.com'])
    await mail({ to, template: 'welcome', apiKey: 'sk_live_canary' }).catch(() => undefined);
  const last = isHarmless
    ? { to: 'slowest@example.com', template: 'welcome' }
    : { to: `slow ${hostile.html}`, template: hostile.bidi, body: hostile.huge };
  await mail(last).catch(() => undefined);
  await semel.job('digest', { per: day('UTC') }, async () => 'sent').run();
  await semel.close();
}

/** Many doubts of two kinds, in a namespace of their own. */
export async function fillCrowd(path: string, count: number, namespace = 'wholesale'): Promise<void> {
  const semel = createSemel({ store: sqliteStore({ path }), namespace, prune: false });
  const refund = semel.tool({
    name: 'refund',
    effect: 'irreversible',
    per: 'ever',
    identity: ['payment'],
    run: async ({ payment }: { payment: number }, ctx): Promise<void> => {
      if (payment >= 7) throw new Error('socket hang up');
      ctx.note(`re_${payment}Qk3PZ2x8`);
      throw new Error('timeout at the bank');
    },
  });
  await Promise.all(
    Array.from({ length: count }, (_, payment) => refund({ payment }).catch(() => undefined)),
  );
  await semel.close();
}

/** More rows than a page of the outbox, of which one is dead. */
export async function fillOutbox(path: string, count: number): Promise<void> {
  const semel = createSemel({ store: sqliteStore({ path }), namespace: 'shop', prune: false });
  const run = ({ to }: { to: string }): void => void to;
  const mail = semel.tool({ name: 'letter', effect: 'irreversible', per: 'ever', identity: ['to'], run });
  const database = new DatabaseSync(path);
  await semel.records.list({ limit: 1 });
  await transaction(database, async (tx) => {
    for (let n = 0; n < count; n += 1) await mail.stage(tx, { to: `s${n}@example.com` });
  });
  database.exec("UPDATE outbox SET state = 2, reason = 'refused by the mailer' WHERE n = 1");
  database.close();
  await semel.close();
}
