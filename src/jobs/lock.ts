// A job's lock, which no two runs hold at a time, across slots and machines. Its contract is called `lock.<job>`. After the run
// it can be left to its lease (`--at-least`): the store's clock ends it, and no process is needed.

import { formatDuration } from '../core/contract/duration.ts';
import { leaveClaim, type OpenAttempt, type Semel, type ToolFunction } from '../semel/index.ts';
import { type Claimed, claim, type MakeTool } from './claim.ts';
import { flushNotes } from './ending.ts';
import type { claimOptions } from './guarded-command.ts';
import { type Holder, ignoreStale } from './liveness/holder.ts';
import { contractName, type Ids } from './slots/run-id.ts';

interface LockOptions {
  readonly semel: Semel;
  readonly job: string;
  readonly leaseMs: number;
}

interface LockArgs {
  readonly job: string;
  readonly ids?: Ids;
}

/** Mutual exclusion only: it never dispatches anything, so it is free once released or once its holder is gone. */
export function lockTool({ semel, job, leaseMs }: LockOptions): ToolFunction<LockArgs, unknown> {
  return semel.tool({
    name: contractName('lock', job),
    effect: 'write-non-idempotent',
    per: 'ever',
    dispatch: 'explicit',
    lease: leaseMs,
    timeout: 'none',
    ifBusy: 'fail',
    maxAttempts: Number.MAX_SAFE_INTEGER,
    share: true,
    run: (_: LockArgs) => undefined,
  });
}

/** A lock is never done: if a person or an import settled its record, clear that and claim again. */
export async function claimLock(
  tool: MakeTool<LockArgs>,
  args: LockArgs,
  key: string,
  claiming: ReturnType<typeof claimOptions>,
  atLeastMs: number,
): Promise<Claimed> {
  const { semel } = claiming;
  for (;;) {
    const claimed = await claim({ ...claiming, tool, args, options: {}, mayOutliveProcess: atLeastMs > 0 });
    const record =
      claimed.kind === 'done' || claimed.kind === 'refused' ? await semel.records.get(key) : undefined;
    if (record === undefined) return claimed;
    const by = { by: 'semel run', note: 'a lock is never done' };
    const isSettled = record.status === 'succeeded' || record.status === 'failed';
    if (!record.inDoubt && !isSettled) return claimed;
    await ignoreStale(
      isSettled
        ? semel.records.forget(record.ref, by)
        : semel.doubts.resolve(record.ref, 'notLanded', { ...by, force: true }),
    );
  }
}

/**
 * Leaves the lock to its lease for the rest of its time; false: there is nothing left, or the ledger did not take it. Until
 * the caller has ended its liveness, a crash frees the lock at once, as that of any run that died.
 */
export async function keepLock(
  semel: Semel,
  key: string,
  attempt: OpenAttempt,
  { atLeastMs, heldMs }: { readonly atLeastMs: number; readonly heldMs: number },
): Promise<boolean> {
  const leftMs = atLeastMs - heldMs;
  if (leftMs <= 0) return false;
  // For people: which lock is kept although its run is over. Its fence identifies the claim.
  const note = { atLeast: formatDuration(atLeastMs), fence: attempt.fence };
  await semel.records.annotate(key, note).catch(() => undefined);
  await flushNotes(semel, key);
  return leaveClaim(attempt, leftMs).catch(() => false);
}

/** The `--at-least` that keeps a lock although its run is over. */
export async function findAtLeast(semel: Semel, { record }: Holder): Promise<string | undefined> {
  const history = await semel.records.history(record.key).catch(() => []);
  const note = history.findLast(({ type, detail }) => type === 'noted' && detail.atLeast !== undefined);
  return note?.detail.fence === record.fence ? String(note.detail.atLeast) : undefined;
}
