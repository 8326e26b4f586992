// What is true of calls that are made of steps: each step lands once for its call, and what is told of the call is what became
// of its steps.

import { type StepPlan, stepName } from './contracts.ts';
import { type Ended, outlives } from './ended.ts';
import { type CallLog, type Effect, type KeyLog, type Log, madeFor } from './log.ts';

/** Whatever record a step has, and however often its call is run, nothing makes it twice but a person. */
export function stepsLandOnce(ended: Ended, known: KeyLog): void {
  const { log } = ended;
  const own = log.effects.filter(({ of }) => of?.key === known.key);
  for (const later of own) {
    for (const earlier of own) {
      const isSame = earlier.of?.generation === later.of?.generation && earlier.of?.step === later.of?.step;
      // Inside one life of one record, `landedOnce` judges.
      const isJudged = earlier.key === later.key && earlier.generation === later.generation;
      if (!isSame || isJudged || earlier.id >= later.id) continue;
      // The one that landed later may be the older one.
      const first = earlier.key === later.key && later.fence < earlier.fence ? later : earlier;
      if (!isLifted(log, first) && !outlives(ended, first))
        log.violated(
          'DUPLICATE: a step lands once for its call',
          `${known.key} g${later.of?.generation}: effect ${earlier.id} of ${earlier.key} and ${later.id} of ${later.key}`,
        );
    }
  }
}

/** A person had its record forgotten, or said for certain what nobody knew. */
function isLifted(log: Log, { key, fence }: Effect): boolean {
  return log
    .keyLog(key)
    .verdicts.some((verdict) => verdict.fence > fence && (verdict.act === 'forget' || verdict.forced));
}

export function toldOfItsSteps(ended: Ended, call: CallLog): void {
  const { log } = ended;
  const { told } = call;
  if (told === undefined || told.receipt.skipped) return;
  const { key, generation } = told.receipt;
  const made = madeFor(log, key, generation);
  const isMade = (step: number) => made.some(({ of }) => of?.step === step);
  if (told.ok) {
    const missing = stepsOf(call).findIndex((_, nth) => !isMade(nth));
    if (missing >= 0)
      log.violated('LOST: told succeeded means every step landed', `${call.id}: not ${stepName(missing)}`);
    return;
  }
  const { code } = told.error;
  if (code === 'PARTIAL_SUCCESS') toldWhichSteps(ended, call, made);
  const isDefinite = code === 'PARTIAL_SUCCESS' || code === 'NOT_LANDED' || code === 'FAILED';
  for (const [nth] of stepsOf(call).entries())
    if (isDefinite && isOpen(log, call, nth))
      log.violated('an uncertain step is a doubt', `${call.id} is told ${code}: ${stepName(nth)} is open`);
}

const stepsOf = ({ asked }: CallLog): readonly StepPlan[] => asked.plan.steps;

/** The last that the attempt heard of a step leaves it open. */
function isOpen({ calls }: Log, call: CallLog, step: number): boolean {
  const last = calls.findLast(
    ({ home }) => home?.call === call && home.fence === call.told?.receipt.fence && home.step === step,
  );
  if (last === undefined) return false;
  if (last.told === undefined || last.toldAt > call.toldAt) return true;
  return (
    !last.told.ok && ['IN_DOUBT', 'UNRECORDED', 'LEASE_LOST', 'IN_FLIGHT'].includes(last.told.error.code)
  );
}

/** Each step is named as what it is, and to every caller alike. */
function toldWhichSteps(ended: Ended, call: CallLog, made: readonly Effect[]): void {
  const { log } = ended;
  const { fence } = (call.told as NonNullable<CallLog['told']>).receipt;
  const words = wordsOf(call);
  if (words === undefined) {
    log.violated('a half-done call names its steps', `${call.id}: ${messageOf(call)}`);
    return;
  }
  for (const [nth] of stepsOf(call).entries()) {
    const effects = made.filter(({ of }) => of?.step === nth && of.fence <= fence);
    const isWrong = words.landed.includes(stepName(nth))
      ? effects.length === 0
      : words.notLanded.includes(stepName(nth)) &&
        effects.some((effect) => !outlives(ended, effect) && !isLifted(log, effect));
    if (isWrong)
      log.violated('which steps landed is told as it is', `${call.id}: ${stepName(nth)}: ${messageOf(call)}`);
  }
  const other = log.calls.find((each) => isSameRecord(each, call) && wordsOf(each) !== undefined);
  if (other !== undefined && wordsOf(other)?.text !== words.text)
    log.violated('every caller is told the same steps', `${messageOf(other)} / ${messageOf(call)}`);
}

function isSameRecord({ told }: CallLog, { told: other }: CallLog): boolean {
  const [a, b] = [told?.receipt, other?.receipt];
  return a?.key === b?.key && a?.fence === b?.fence;
}

const messageOf = ({ told }: CallLog) => (told?.ok === false ? told.error.message : '');

function wordsOf(call: CallLog) {
  const [text, landed = '', notLanded = ''] =
    /: (s\d(?:, s\d)*) landed, (?:(s\d(?:, s\d)*) did not land|this attempt did not start the rest):/.exec(
      messageOf(call),
    ) ?? [];
  if (text === undefined) return undefined;
  return { text, landed: landed.split(', '), notLanded: notLanded.split(', ') };
}
