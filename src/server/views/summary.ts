// What a page needs before anything else: who asks, which namespaces there are, and what is open.

import { readCall } from '../../outbox/index.ts';
import { isDamaged, readOrDamage } from '../../store/damage.ts';
import type { OutboxRow } from '../../store/outbox.ts';
import type { Page, StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import { object, oneOf, type Read, text } from '../exchange/schema.ts';
import type { Space } from '../space.ts';
import { createQueue } from './queue.ts';

export const outboxQuery = object(
  {},
  {
    state: oneOf(['waiting', 'in doubt', 'dead']),
    after: text({
      max: 20,
      pattern: /^\d+$/,
      example: '17',
      about: 'The number of the last row of the page before.',
    }),
  },
);

/** More are not counted. */
const maxCounted = 1_000;
/** A record may have a megabyte. */
const countedAtOnce = 50;
const maxNamespaces = 50;
/** Held at once: the args of each may have a megabyte. */
const outboxRows = 50;

/** Each holds a page in memory. */
const looks = createQueue(4);

/** The namespaces that this token may look into, with what needs a decision there. */
export async function whoAmI(_: object, context: Context): Promise<object> {
  return (await looks(() => describeAsker(context), context)) ?? {};
}

async function describeAsker(context: Context): Promise<object> {
  const { credential, space, spaces } = context;
  const isAll = credential.mayChoose;
  const names = isAll ? (await space.semel.records.namespaces()).slice(0, maxNamespaces) : [];
  const all = [...new Set([...names, credential.namespace])].sort();
  const { kind } = await space.engine.store.open();
  const namespaces: object[] = [];
  // One after the other: each holds a page of records in memory.
  for (const name of all) namespaces.push({ name, ...(await countOpen(spaces.of(name))) });
  return {
    name: credential.name,
    role: credential.role,
    namespace: credential.namespace,
    namespaces,
    store: kind,
    hasOutbox: await isOutboxUsed(space, all),
  };
}

/** Something is staged. */
async function isOutboxUsed({ engine }: Space, namespaces: readonly string[]): Promise<boolean> {
  const { outbox } = engine.store;
  if (outbox === undefined) return false;
  for (const namespace of namespaces)
    if ((await outbox.list({ namespace, state: undefined, limit: 1 })).length > 0) return true;
  return false;
}

async function countOpen({ engine }: Space): Promise<object> {
  const items: Pick<StoredRecord, 'inDoubt' | 'status' | 'lapsed' | 'lastDispatchedAt' | 'updatedAt'>[] = [];
  let isCut = false;
  for (const status of ['unknown', 'running'] as const) {
    let after: string | undefined;
    let counted = 0;
    do {
      const page: Page<StoredRecord> = await engine.store.list({
        ...{ namespace: engine.namespace, status, limit: countedAtOnce },
        ...(after === undefined ? {} : { after }),
      });
      // Without args and results.
      for (const { inDoubt, status: is, lapsed, lastDispatchedAt, updatedAt } of page.items)
        items.push({ inDoubt, status: is, lapsed, lastDispatchedAt, updatedAt });
      counted += page.items.length;
      after = page.next;
    } while (after !== undefined && counted < maxCounted);
    isCut ||= after !== undefined;
  }
  const doubts = items.filter(({ inDoubt }) => inDoubt);
  const oldest = Math.min(...doubts.map(({ lastDispatchedAt, updatedAt }) => lastDispatchedAt ?? updatedAt));
  return {
    inDoubt: doubts.length,
    inFlight: items.filter(({ status, lapsed }) => status === 'running' && !lapsed).length,
    ...(doubts.length === 0 ? {} : { oldestDoubtAt: new Date(oldest) }),
    ...(isCut ? { isCut } : {}),
  };
}

export async function showSummary(_: object, context: Context): Promise<object> {
  return (await looks(() => countOpen(context.space), context)) ?? {};
}

export async function listOutbox(query: Read<typeof outboxQuery>, context: Context): Promise<object> {
  return (await looks(() => readOutbox(query, context), context)) ?? {};
}

async function readOutbox({ state, after }: Read<typeof outboxQuery>, { space }: Context): Promise<object> {
  const { store, namespace } = space.engine;
  if (store.outbox === undefined) return { isAvailable: false, rows: [] };
  const from = after === undefined ? {} : { after: Number(after) };
  const rows = await store.outbox.list({ namespace, state, limit: outboxRows, ...from });
  return {
    isAvailable: true,
    rows: rows.map(toRow),
    ...(rows.length === outboxRows ? { next: String(rows.at(-1)?.n) } : {}),
  };
}

function toRow(row: OutboxRow): object {
  const { n, key, contract, group, state, stagedAt, dueAt, tries, reason, drift } = row;
  const staged = readOrDamage(() => readCall(row));
  return {
    ...{ n, key, contract, group, state, tries, reason, drift },
    stagedAt: new Date(stagedAt),
    dueAt: new Date(dueAt),
    ...(isDamaged(staged) ? { isDamaged: true } : {}),
    // A list shows a line of it.
    ...(!isDamaged(staged) && staged.args.length <= 20_000
      ? { args: JSON.parse(staged.args) as unknown }
      : {}),
  };
}
