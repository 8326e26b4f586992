// Delivers one row: through the path of every call, under the row's key. What lands takes its row along in one commit; where
// that cannot be, the row is marked with the life of the record before its effect starts. A row that was marked in another
// life is in doubt, never a first run. Its record decides what becomes of the row: in doubt never becomes dead.

import type { Result, Tool, Try } from '../call/index.ts';
import type { Moment } from '../core/clock.ts';
import { majorVersion } from '../core/contract/version.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { hasSettledStaged } from '../rules/state.ts';
import { type Engine, findInstant, runAs } from '../semel/index.ts';
import { isDamaged, readOrDamage } from '../store/damage.ts';
import type { Outbox, OutboxRow, OutboxState } from '../store/outbox.ts';
import { fingerprintOf, isFollowing, readCall, toCall } from './staged-call.ts';

export interface DeliveryOptions {
  readonly maxTries: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
}

/** What became of a row. */
export interface Delivery {
  readonly contract: string;
  readonly key: string;
  readonly group: string | null;
  readonly outcome: 'delivered' | Exclude<OutboxState, 'waiting'> | 'retried later';
  /** Why it was not delivered. */
  readonly reason: string | undefined;
}

/** A row that a relay has. */
export interface LentRow {
  readonly row: OutboxRow;
  /** When the loan ends, by the store's clock. Identifies the loan. */
  dueAt: number;
  /** When it was asked for. */
  lentAt: Moment;
}

/** How long a row is lent, unless the relay asks for more. */
export const holdMs = 30_000;

/** Another relay, or a caller, may be working on it. */
const busyWaitMs = 1_000;
/** Doubts are checked again: `verify` or a person may decide later. */
const doubtWaitMs = 30_000;
/** Another program may have the version of the tool that it needs. */
const versionWaitMs = 30_000;

interface Verdict {
  readonly state: OutboxState;
  readonly waitMs: number;
  readonly reason: string;
  readonly isSpent?: boolean;
}

export async function deliver(
  engine: Engine,
  outbox: Outbox,
  lent: LentRow,
  options: DeliveryOptions,
): Promise<Delivery> {
  const { row } = lent;
  const about = { contract: row.contract, key: row.key, group: row.group };
  let hasStarted = false;
  let isOtherLife = false;
  let isRemoved = false;
  const staged = readOrDamage(() => readCall(row));
  if (isDamaged(staged)) return putBack({ state: 'in doubt', waitMs: doubtWaitMs, reason: damagedRow });
  const tool = engine.find(row.contract)?.tool;
  if (tool === undefined || majorVersion(tool.contract.version) !== majorVersion(row.version)) {
    const reason = `it was staged for version ${row.version}; this relay has ${tool?.contract.version ?? 'none'}`;
    return putBack({ state: row.state, waitMs: versionWaitMs, reason });
  }
  const call = toCall(neverWaiting(tool), row, staged);
  const { conversation, turn, run, caller } = call.identity;
  // Calls from inside its run belong to the day that it was staged for.
  const at = findInstant(tool.contract, call.periodEndsAt, [row.stagedAt]) ?? row.stagedAt;
  const result = await runAs({ conversation, turn, run, caller, at }, () =>
    engine.pipeline.runAfter(call, async ({ held }): Promise<Try | undefined> => {
      // Somebody else may have delivered it since, and the next of its group; even its record may be gone by now.
      if (lent.lentAt.passedMs(engine.clock) > holdMs) return stopBefore(lateHold);
      hasStarted = true;
      // Every write that is harmless to repeat is one of its own.
      if (isRepeatable(tool.contract.effect)) return undefined;
      isOtherLife = row.generation !== null && row.generation !== held.generation;
      if (isOtherLife) return stopBefore(otherLife);
      isRemoved = outbox.removesLanded && held.key === row.key && isFollowing(row);
      if (isRemoved && tool.contract.windowMs > holdMs) return undefined;
      isOtherLife = !(await outbox.mark({ n: row.n, generation: held.generation }));
      return isOtherLife ? stopBefore(otherLife) : undefined;
    }),
  );
  // RESULT_OMITTED: it landed, and only its value was not stored.
  if (result.ok || result.error.code === 'RESULT_OMITTED') {
    if (!isRemoved || !result.receipt.executed) await outbox.remove(row.n);
    return { ...about, outcome: 'delivered', reason: undefined };
  }
  if (isOtherLife && (await outbox.find(row.namespace, row.key))?.n !== row.n)
    return { ...about, outcome: 'delivered', reason: undefined };
  const own = { ...row, fingerprint: fingerprintOf(row, staged) };
  return putBack(await judge(engine, outbox, own, result, { hasStarted, isOtherLife }, options));

  async function putBack({ state, waitMs, reason: told, isSpent = false }: Verdict): Promise<Delivery> {
    // A provider's message may contain characters that a database does not store.
    const reason = told.toWellFormed().replaceAll('\0', ' ');
    await outbox.putBack({ n: row.n, dueAt: lent.dueAt, state, waitMs, reason, isSpent });
    return { ...about, outcome: state === 'waiting' ? 'retried later' : state, reason };
  }
}

function stopBefore(because: string): Try {
  return { ending: { outcome: 'released', because }, thrown: undefined, final: true };
}

const lateHold = 'this relay had it for too long before it started: another one may have delivered it';

const otherLife =
  'its effect was started before, and its record is gone: nobody can tell whether it landed. Check, then ' +
  '`semel outbox retry` or `semel outbox drop`';

const damagedRow =
  'the row was changed since it was staged, so it is not delivered. Check what it should be, then `semel outbox drop` it';

async function judge(
  engine: Engine,
  outbox: Outbox,
  row: OutboxRow,
  { error, receipt }: Extract<Result, { ok: false }>,
  { hasStarted, isOtherLife }: { readonly hasStarted: boolean; readonly isOtherLife: boolean },
  { maxTries, backoffMs, maxBackoffMs }: DeliveryOptions,
): Promise<Verdict> {
  const reason = isOtherLife ? otherLife : error.happened;
  const longest = Math.min(maxBackoffMs, backoffMs * 2 ** row.tries);
  const waitMs = Math.max(error.retryAfterMs ?? 0, longest * (0.5 + engine.random.fraction() / 2));
  if (isOtherLife) return { state: 'in doubt', waitMs: doubtWaitMs, reason };
  if (error.code.startsWith('STORE_') || error.code === 'UNRECORDED' || error.code === 'ABORTED')
    return { state: row.state, waitMs, reason };
  if (error.code === 'IN_FLIGHT' || error.code === 'LEASE_LOST')
    return { state: row.state, waitMs: busyWaitMs, reason };
  // The record decides, not the error: in doubt never becomes dead.
  const record = await engine.store.read(row.namespace, receipt.key || row.key);
  const isLive = record !== undefined && (!record.expired || hasSettledStaged(record, row.stagedAt));
  if (isLive && record.inDoubt) return { state: 'in doubt', waitMs: doubtWaitMs, reason };
  // It was started once, and its record is gone.
  if (row.generation !== null && (!isLive || record.generation !== row.generation))
    return { state: 'in doubt', waitMs: doubtWaitMs, reason: otherLife };
  if (isLive && record.status === 'running') return { state: row.state, waitMs: busyWaitMs, reason };
  const isReleased = isLive && record.status === 'released' && error.code !== 'EXPIRED';
  // An attempt that did not start counts for nothing.
  if (isReleased && !hasStarted) return { state: row.state, waitMs, reason: lateHold };
  if (isReleased && row.tries + 1 < maxTries) return { state: 'waiting', waitMs, reason, isSpent: true };
  const mayHaveLanded = isLive && record.doubtFence !== null && record.fingerprint === row.fingerprint;
  // Its record may be gone before somebody delivers it again: then only the row says that it may have landed.
  if (mayHaveLanded) await outbox.mark({ n: row.n, generation: record.generation });
  return { state: 'dead', waitMs: 0, reason, isSpent: !mayHaveLanded };
}

const adapted = new WeakMap<Tool, Tool>();

/** A relay has other rows to deliver while a call is executed elsewhere. */
function neverWaiting(tool: Tool): Tool {
  const known = adapted.get(tool) ?? { ...tool, contract: { ...tool.contract, ifBusy: 'fail' as const } };
  adapted.set(tool, known);
  return known;
}
