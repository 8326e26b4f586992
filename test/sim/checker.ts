// Judges a history that is over: what really happened against what the ledger says and what callers were told.

import type { Contract } from '../../src/core/contract/contract.ts';
import { isRepeatable } from '../../src/core/contract/words.ts';
import type { StoredRecord } from '../../src/store/store.ts';
import type { FinalCall } from './callers.ts';
import { attemptAt, counted, type Ended, outlives } from './ended.ts';
import {
  type Attempt,
  type CallLog,
  type Effect,
  type Home,
  type KeyLog,
  type KnownAct,
  type Log,
  madeFor,
  quietAtOf,
} from './log.ts';
import { stepsLandOnce, toldOfItsSteps } from './told-steps.ts';
import { ownKeyMark } from './wire.ts';
import { toldOfItsWrite } from './writes.ts';

/** What the provider's window leaves for a request on its way, besides the attempt's own timeout. */
const inTheNetworkMs = 60_000;

export function check(ended: Ended): void {
  const { log } = ended;
  for (const known of log.keys.values()) {
    if (known.wanted.size === 0) continue;
    landedOnce(ended, known);
    oneIntentPerGeneration(log, known);
    completedMeansLanded(log, known);
    stepsLandOnce(ended, known);
    notStuck(log, known, ended.records.get(known.key));
    toldInTheEnd(ended, known);
  }
  for (const call of log.calls) {
    answered(log, call);
    ranWhatItSays(log, call);
    toldTheTruth(ended, call);
    notTooOld(ended, call);
    toldItsOwn(log, call);
    toldWhoMayTryAgain(log, call);
    verifiedAtOnce(log, call);
    if (isRepeatable(call.contract.effect)) toldOfItsWrite(log, call);
    if (call.contract.via === 'steps') toldOfItsSteps(ended, call);
  }
  for (const final of ended.finals) settledInTheEnd(log, final, ended.records.get(final.call.key));
}

const ofGeneration = (log: Log, key: string, generation: number) =>
  log.effects.filter((effect) => effect.key === key && effect.generation === generation);

/** Every effect after the first is covered: by an accepted repeat, or by the stated limit. */
function landedOnce(ended: Ended, known: KeyLog): void {
  const { log } = ended;
  const generations = new Set(
    log.effects.filter(({ key }) => key === known.key).map(({ generation }) => generation),
  );
  for (const generation of generations) {
    const effects = ofGeneration(log, known.key, generation);
    for (const later of effects) {
      for (const earlier of effects) {
        if (earlier.part !== later.part) continue;
        if (earlier.fence > later.fence || (earlier.fence === later.fence && earlier.id >= later.id))
          continue;
        // What may be repeated by its own declaration may be followed by anything.
        if (isRepeatable(earlier.contract.effect)) continue;
        const why = uncovered(ended, known, earlier, later);
        if (why !== undefined)
          log.violated(
            'DUPLICATE: every surplus effect is covered',
            `${known.key} g${generation}: effect ${earlier.id} of f${earlier.fence} and ${later.id} of f${later.fence}: ${why}`,
          );
      }
    }
  }
}

function uncovered(ended: Ended, known: KeyLog, earlier: Effect, later: Effect): string | undefined {
  const { contract } = later;
  const between = (fence: number) => fence > earlier.fence && fence <= later.fence;
  const accepted =
    known.verdicts.some(
      ({ act, fence, forced }) => between(fence) && (act === 'runAgain' || (act === 'notLanded' && forced)),
    ) ||
    (contract.onDoubt === 'rerun' &&
      // Inside one attempt too: an SDK that sends again by itself does what the contract accepts.
      (earlier.fence === later.fence ||
        known.attempts.some(({ fence, unbounded }) => unbounded && between(fence))));
  if (accepted) return undefined;
  if (isOwnKeyOfTheDead(known, earlier, later)) return undefined;
  // Under a key that an SDK made up, too, the target knows the second as long as it remembers the first.
  const isSameKey = earlier.providerKey !== undefined && earlier.providerKey === later.providerKey;
  const isKeyed = contract.rerunWithinMs !== null || isSameKey;
  if (isKeyed && (outlivesMargin(known, contract, earlier) || outlivesMargin(known, contract, later)))
    return undefined;
  const verdict = known.verdicts.some(
    ({ act, fence }) => between(fence) && (act === 'cleared' || act === 'notLanded'),
  );
  if (verdict && outlives(ended, earlier)) return undefined;
  return verdict
    ? 'a verdict "not landed" was believed too early'
    : isKeyed
      ? "the provider's memory was over"
      : 'no verdict, no acceptance';
}

/**
 * An SDK of its own sent it under its own key, and its attempt had not said that it had ended when the other one took over:
 * nobody could know.
 */
function isOwnKeyOfTheDead(known: KeyLog, { providerKey, fence }: Effect, later: Effect): boolean {
  if (providerKey?.startsWith(ownKeyMark) !== true) return false;
  const { endedAt = Number.POSITIVE_INFINITY } = attemptAt(known, fence) ?? {};
  return later.fence > fence && endedAt > (attemptAt(known, later.fence)?.claimedAt ?? 0);
}

/** The same for a target that honours keys: it was on its way for longer than the margin of its window. */
function outlivesMargin(known: KeyLog, { timeoutMs }: Contract, effect: Effect): boolean {
  const attempt = attemptAt(known, effect.fence);
  const judgedAt = attempt?.judgedAt ?? attempt?.crossedAt;
  const runsMs = Number.isFinite(timeoutMs) ? timeoutMs : 0;
  return judgedAt !== undefined && effect.at >= judgedAt + runsMs + inTheNetworkMs;
}

/** Other args never join a generation: a conflict never executes. */
function oneIntentPerGeneration(log: Log, known: KeyLog): void {
  const identities = new Map<number, string>();
  for (const effect of log.effects) {
    const { key, generation, identity } = effect.key === known.key ? effect : (effect.of ?? effect);
    if (key !== known.key || generation === 0) continue;
    const first = identities.get(generation);
    if (first !== undefined && first !== identity)
      log.violated('a conflict never executes', `${key} g${generation}: ${first} and ${identity}`);
    identities.set(generation, identity);
  }
}

function completedMeansLanded(log: Log, known: KeyLog): void {
  for (const [generation, { text }] of known.completions) {
    if (madeFor(log, known.key, generation).length === 0)
      log.violated('LOST: completed means landed', `${known.key} g${generation} says ${text}`);
  }
}

function notStuck(log: Log, { key }: KeyLog, record: StoredRecord | undefined): void {
  if (record?.status === 'running' && !record.lapsed)
    log.violated('STUCK: everything settles or is in doubt', `${key} is still running`);
}

/** A process that lives tells the ledger how each of its attempts ended, however long the store was away. */
function toldInTheEnd({ log, faults, records }: Ended, known: KeyLog): void {
  const lives = ({ token }: Attempt) => {
    const asker = log.askers.get(token);
    return asker?.alive === true && asker.isClosing !== true;
  };
  for (const attempt of known.attempts)
    if (attempt.returned && !attempt.reported && lives(attempt))
      log.violated('what an effect returned is told to the ledger', `${known.key} f${attempt.fence}`);
  const last = known.attempts.at(-1);
  const record = records.get(known.key);
  // A copy that comes when its claim is long over takes the key for nobody.
  if (counted(faults, ['delayed request', 'duplicated request', 'old request'])) return;
  if (last !== undefined && record?.lapsed && record.fence === last.fence && lives(last))
    log.violated('a living process does not leave its claim behind', `${known.key} f${last.fence}`);
}

/** What has expired, or what this very process had forgotten, is not replayed. */
function notTooOld({ log, faults }: Ended, call: CallLog): void {
  const { told, key, askedAt, worker } = call;
  if (told?.ok !== true || !told.receipt.replayed || isRepeatable(call.contract.effect)) return;
  const { generation } = told.receipt;
  // Who joins a flight gets what it brings, however long ago the store took it; its leader may have left.
  const goesOn = ({ told: heard, toldAt }: CallLog) =>
    heard === undefined || toldAt >= askedAt || (!heard.ok && heard.error.message.includes('It may land'));
  const isShared = log.calls.some(
    (other) =>
      other !== call &&
      // Whatever record answered each of them: a flight goes by the keys that they have themselves.
      other.keys[0] === call.keys[0] &&
      other.worker === worker &&
      other.askedAt <= askedAt &&
      goesOn(other),
  );
  // A sweep of this process that is at this very record.
  const isSwept = log.sweeps.some(
    (sweep) =>
      sweep.worker === worker &&
      sweep.from <= askedAt &&
      askedAt <= sweep.until &&
      log
        .keyLog(key)
        .attempts.some(
          ({ token, claimedAt }) =>
            log.askers.get(token) === worker && sweep.from <= claimedAt && claimedAt <= sweep.until,
        ),
  );
  if (isShared || isSwept) return;
  const completion = log.keyLog(key).completions.get(generation);
  if (completion === undefined) return;
  // What was refused, forgotten and reopened may land under its old generation after all.
  const isForgotten = ({ key: of, worker: by, generation: which, at }: KnownAct) =>
    of === key && by === worker && which === generation && completion.at < at && at < askedAt;
  if (log.acts.some(isForgotten))
    log.violated('what a process had forgotten it does not replay', `${call.id}: g${generation}`);
  if (completion.kept) return;
  if (counted(faults, ['store clock jump', 'reboot'])) return;
  if (askedAt > completion.at + completion.windowMs)
    log.violated(
      'what has expired is not replayed',
      `${call.id}, asked at ${askedAt}: g${generation} of ${completion.at}`,
    );
}

function answered(log: Log, call: CallLog): void {
  if (call.told === undefined && !call.threw && call.worker.alive)
    log.violated('STUCK: every call is answered', `${call.id} waits for ever`);
}

/** A receipt says whether the call ran the effect; "nothing was run" is believed by whoever calls again. */
function ranWhatItSays(log: Log, call: CallLog): void {
  const { told } = call;
  if (told === undefined) return;
  const code = told.ok ? 'ok' : told.error.code;
  const mayLand = !told.ok && told.error.message.includes('It may land');
  const own = log.effects.filter((effect) => effect.call === call.id);
  const isTold = (effect: Effect) =>
    // Whoever leaves before it is sent hears that it may land: it goes on for those who share it.
    told.receipt.executed || (mayLand && effect.sentAt >= call.toldAt);
  // A repeatable effect that threw is released whatever became of it: by declaration that is harmless.
  if (!own.every(isTold) && !isRepeatable(call.contract.effect))
    log.violated('who is told that nothing was run can rely on it', `${call.id} landed and was told ${code}`);
  const nothing =
    code === 'NOT_PERMITTED' || code === 'IN_FLIGHT' || code === 'KEY_CONFLICT' || code === 'EXPIRED';
  if (nothing && call.sent.length > 0)
    log.violated('who is told to come later ran nothing', `${call.id}: ${code}`);
  if (call.returned && code !== 'ok' && code !== 'UNRECORDED' && !mayLand)
    log.violated('a success is never wasted', `${call.id} returned a value and was told ${code}`);
}

/** Nothing of a record is told to anybody but its own caller, unless the contract shares it. */
function toldItsOwn(log: Log, { id, told, asked, contract }: CallLog): void {
  if (told === undefined) return;
  const { key, generation } = told.receipt;
  const { caller } = asked;
  const owner = log.keyLog(key).wanted.get(generation);
  if (owner !== undefined && owner.asked.caller !== caller && !contract.share)
    log.violated(
      'nobody is told of another caller',
      `${id} of ${caller} hears of ${key} g${generation}, which ${owner.id} of ${owner.asked.caller} asked for`,
    );
  const isStranger = !told.ok && told.error.code === 'NOT_PERMITTED';
  // Also calls from inside another tool's run, which are that tool's callers'.
  const hasStrangers = () =>
    log.calls.some(({ asked: other }) => other.plan === asked.plan && other.caller !== caller);
  if (isStranger && (contract.share || !hasStrangers()))
    log.violated('only another caller is refused', `${id} of ${caller}`);
}

/** A consumer that obeys `retriable: false` gives up for good what the next call could settle. */
function toldWhoMayTryAgain(log: Log, { id, told, asked, contract }: CallLog): void {
  if (told?.ok !== false || told.error.code !== 'IN_DOUBT' || told.error.retriable) return;
  // Nobody can say of another write that it is this one.
  if (asked.plan.hasVerify && !isRepeatable(contract.effect))
    log.violated('what `verify` can decide is retriable', `${id} is told that nobody may try again`);
}

/** Nobody is left in doubt by a call that could have asked, or has found the answer. */
function verifiedAtOnce(log: Log, call: CallLog): void {
  const { id, told, asked, contract, found, gaveUp } = call;
  if (told?.ok !== false || told.error.code !== 'IN_DOUBT') return;
  if (found) log.violated('what `verify` found settles the call', `${id} is told ${told.error.message}`);
  const { cause, message } = told.error;
  const { name, message: because = '' } = (cause ?? {}) as Partial<Error>;
  // The message may be about an earlier attempt: the cause and the caller tell of this one.
  const isOver =
    gaveUp ||
    name === 'TimeoutError' ||
    stopped.test(message) ||
    stopped.test(because) ||
    // A framework may say how it ended when its time is long over, or when its process has ended it.
    hasRunOut(log.attemptOf(call, told.receipt.fence), contract) ||
    wasClosed(call);
  if (asked.plan.hasVerify && told.receipt.executed && !isRepeatable(contract.effect) && !isOver)
    if (!message.includes('`verify` could not tell:'))
      log.violated('`verify` is asked before anybody is left in doubt', `${id} is told ${message}`);
}

const hasRunOut = (attempt: Attempt | undefined, { timeoutMs }: Contract) =>
  attempt?.endedAt !== undefined && attempt.endedAt >= attempt.claimedAt + timeoutMs;

/** Only then: what was said before had to be asked about, and the message tells that closing cut it short. */
const wasClosed = ({ saidAt, worker: { closedAt } }: CallLog) =>
  saidAt !== undefined && closedAt !== undefined && closedAt <= saidAt;

/** The attempt could not ask any more, or its contract is wrong. */
const stopped = /gave up|closing|taken this call over|generator|without `ctx\.dispatch/;

function toldTheTruth(ended: Ended, call: CallLog): void {
  const { log } = ended;
  const { told, contract } = call;
  if (told === undefined || contract.effect === 'read') return;
  const known = log.keyLog(call.key);
  const { receipt } = told;
  if (told.ok) {
    if (receipt.skipped) return;
    toldLanded(log, known, call, (told.value as { effect: number }).effect);
    return;
  }
  const isDefinite =
    ['NOT_LANDED', 'FAILED', 'POISON'].includes(told.error.code) ||
    // Of some of its steps it may say that: that is judged step by step.
    (told.error.code !== 'PARTIAL_SUCCESS' && told.error.message.includes('did not land'));
  if (!isDefinite || isRepeatable(contract.effect) || told.error.message.includes('may have landed')) return;
  for (const effect of madeFor(log, call.key, receipt.generation)) {
    // Of what may be repeated nobody keeps an account.
    if (isRepeatable(effect.contract.effect)) continue;
    const sentBy = effect.key === call.key ? effect : (effect.of as Home);
    const { verdicts } = log.keyLog(effect.key);
    if (sentBy.fence > receipt.fence || outlives(ended, effect)) continue;
    const forced = verdicts.some(({ fence, forced: by }) => by && fence > effect.fence);
    if (!forced)
      log.violated(
        'FALSE-DEFINITE: who is told "not landed" can rely on it',
        `${call.id} was told ${told.error.code} of f${receipt.fence}; effect ${effect.id} of f${effect.fence} landed at ${effect.at}`,
      );
  }
}

function toldLanded(log: Log, known: KeyLog, call: CallLog, effect: number): void {
  const { receipt } = call.told as NonNullable<CallLog['told']>;
  const made = log.effects.find(({ id }) => id === effect);
  const { generation } = receipt;
  // What a call with steps returns, one of them made.
  const landed = made && { ...made, ...(made.key === call.key ? {} : made.of) };
  // Without the ledger there may be no generation; the effect must still be this key's.
  const isOther = !receipt.unguarded && landed?.generation !== generation;
  if (landed === undefined || landed.key !== call.key || isOther) {
    log.violated(
      'LOST: told succeeded means landed',
      `${call.id}: effect ${effect} is not of ${call.key} g${generation}`,
    );
    return;
  }
  if (landed.caller !== call.asked.caller && !call.contract.share)
    log.violated('nobody is told of another caller', `${call.id} gets effect ${effect} of ${landed.caller}`);
  if (landed.identity !== call.identity)
    log.violated(
      "nobody is told another intent's value",
      `${call.id}: ${call.identity} gets that of ${landed.identity}`,
    );
  if (receipt.unguarded) return;
  const completion = known.completions.get(generation);
  const reported = known.attempts.some(
    // It did it itself, or it asked and found that it had landed.
    (attempt: Attempt) => attempt.reported && (call.sent.includes(attempt.fence) || attempt.call === call.id),
  );
  const shared = log.calls.some(
    (other) => other !== call && other.key === call.key && other.sent.includes(landed.fence),
  );
  if (completion === undefined && !reported && !shared)
    log.violated('acknowledged means durable', `${call.id}: g${generation} has no completion`);
  if (
    receipt.replayed &&
    completion !== undefined &&
    completion.text !== null &&
    !shared &&
    completion.text !== JSON.stringify({ effect })
  )
    log.violated('replays equal the first value', `${call.id}: ${completion.text} and ${effect}`);
}

/** With no fault left, and time enough, only an open question may stay open. */
function settledInTheEnd(log: Log, { call, plan }: FinalCall, record: StoredRecord | undefined): void {
  const { told } = call;
  if (told === undefined) return;
  const code = told.ok ? 'ok' : told.error.code;
  const isOpen = code === 'IN_DOUBT' || code === 'PARTIAL_SUCCESS';
  const isStranger = code === 'NOT_PERMITTED';
  if (!isOpen && !isStranger && !['ok', 'FAILED', 'POISON', 'RESULT_OMITTED', 'KEY_CONFLICT'].includes(code))
    log.violated('STUCK: with no fault left a call is answered', `${call.id}: ${code}`);
  // Only what left under an unsteady clock is never quiet: that needs a person.
  const asked = call.sent.length === 0;
  // Nobody can say of a part that it is all, or nothing.
  const isPartial = plan.parts.length > 1;
  // A sweep may have sent it once more not long before.
  const isQuiet = log
    .keyLog(call.key)
    .attempts.every((attempt) => quietAtOf(attempt) + attempt.overrunMs <= call.askedAt);
  if (
    isOpen &&
    asked &&
    isQuiet &&
    plan.hasVerify &&
    !isRepeatable(call.contract.effect) &&
    !isPartial &&
    record !== undefined &&
    Number.isFinite(record.inFlightMs)
  )
    log.violated('STUCK: what can be verified is decided in the end', `${call.id}: ${code}`);
}
