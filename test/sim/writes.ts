// What a call of a class that may be repeated is told: every such call is a write of its own, made as it was asked for and after
// it was asked for, whatever an earlier write or an earlier contract of the tool left behind.

import { isRepeatable } from '../../src/core/contract/words.ts';
import type { Attempt, CallLog, Log } from './log.ts';

export function toldOfItsWrite(log: Log, call: CallLog): void {
  const { told } = call;
  if (told === undefined) return;
  if (told.ok) {
    if (!told.receipt.skipped) wrote(log, call, (told.value as { effect: number }).effect);
  } else if (told.error.code === 'FAILED') refusedItself(log, call);
  else if (told.error.code === 'IN_DOUBT' && !told.error.retriable) meetsAnOpenEffect(log, call);
}

/** Equal calls of one process may share a write that had not been started. */
const sharers = (log: Log, { keys, worker, note }: CallLog) =>
  log.calls.filter((each) => each.worker === worker && each.keys[0] === keys[0] && each.note === note);

function wrote(log: Log, call: CallLog, effect: number): void {
  const { id, askedAt, note } = call;
  const { attempts, verdicts } = log.keyLog(call.key);
  // What a person says of a record counts for whoever holds it.
  if (verdicts.some(({ act }) => act === 'landed' || act === 'runAgain')) return;
  const landed = log.effects.find((each) => each.id === effect);
  if (landed !== undefined && landed.note !== note)
    log.violated(
      'a write is told as done by itself alone',
      `${id} asks for ${note} and gets effect ${effect}: ${landed.note}`,
    );
  // Another process may have taken it over, and made it in the same words; or an earlier contract left its effect in doubt,
  // and `verify` found it: nothing came between.
  const isMade = log.calls.some(
    (each) => each.identity === call.identity && each.note === note && (each.sentAt ?? -1) >= askedAt,
  );
  const isFound =
    sharers(log, call).some(({ found }) => found) && attempts.some((each) => !isRepeatable(each.effect));
  if (!isMade && !isFound)
    log.violated('every repeatable write is made', `${id} is told of effect ${effect} and sent nothing`);
}

function refusedItself(log: Log, call: CallLog): void {
  const ids = sharers(log, call).flatMap(({ id, askedAt }) => (askedAt <= call.toldAt ? [id] : []));
  const hasClaimed = [...log.keys.values()].some(({ attempts }) =>
    attempts.some(({ call: by }) => by !== null && ids.includes(by)),
  );
  if (!hasClaimed && call.told?.receipt.unguarded !== true)
    log.violated('a write is refused by its own target alone', `${call.id}: ${String(errorOf(call))}`);
}

/** Only what an earlier contract began, and what may not be repeated, can need a person. */
function meetsAnOpenEffect(log: Log, call: CallLog): void {
  const { attempts, verdicts } = log.keyLog(call.key);
  // Known: a verdict may leave the stricter class of an earlier contract with what is sent next.
  if (verdicts.length > 0) return;
  const isAccountedFor = ({ endedAs, endedAt = call.toldAt + 1 }: Attempt) =>
    (endedAs === 'released' || endedAs === 'failed') && endedAt <= call.toldAt;
  // Also one that only looked: by its contract, what it looked for may not be repeated.
  const isOpen = (attempt: Attempt) => !isRepeatable(attempt.effect) && !isAccountedFor(attempt);
  if (!attempts.some(isOpen))
    log.violated('a repeatable write needs no person', `${call.id}: ${String(errorOf(call))}`);
}

const errorOf = ({ told }: CallLog) => (told?.ok === false ? told.error.message : undefined);
