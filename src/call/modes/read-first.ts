// Reads the record of a call before it is claimed, at a store that replies later: for tools that are mostly called again,
// one read replaces a claim that would lose.

import type { SemelError } from '../../core/errors.ts';
import type { LostAnswer } from '../../ledger/index.ts';
import type { Call } from '../call.ts';
import { type PendingRead, reportAnswer } from '../claim.ts';
import type { Env } from '../env.ts';
import type { Habit } from '../habit.ts';
import { type Result, refuse } from '../receipt.ts';
import { abortedError, closedError } from '../refusals.ts';
import { replay } from '../replay.ts';
import type { Work } from '../work.ts';

export async function readOrStart(
  env: Env,
  work: Work,
  habit: Habit,
  read: PendingRead,
  start: (call: Call, known: LostAnswer | undefined) => Promise<Result>,
): Promise<Result> {
  const { call } = read;
  let found: LostAnswer | undefined;
  work.active.add(read);
  try {
    const reading = env.ledger.readFirst?.(call, read);
    found = reading && (await read.orAbandon(reading));
  } catch (error) {
    if (read.isAbandoned) return refuse(call, undefined, error as SemelError);
  } finally {
    work.active.remove(read);
  }
  // Since the store replied, the caller may have left, or this process closed.
  if (call.signal?.aborted) return refuse(call, undefined, abortedError(call));
  if (work.closing.aborted) return refuse(call, undefined, closedError());
  if (found !== undefined) habit.learn(call.tool.contract, true);
  if (found?.is !== 'replay' || call.tool.onReplay !== undefined) return start(call, found);
  reportAnswer(env, call, found);
  return replay(call, found.record);
}
