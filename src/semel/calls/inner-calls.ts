// Where the calls belong that are made from inside a run: where their outer call does, however it was named. A sweep that
// continues the outer call later knows no more than its record, and must meet the same inner records.

import type { Call, Pipeline } from '../../call/index.ts';
import type { Clock } from '../../core/clock.ts';
import type { Contract } from '../../core/contract/contract.ts';
import { calendarSlot } from '../../core/contract/period.ts';
import { ambient, runAs } from './ambient.ts';

/** Calls from inside a run have the conversation, turn, run and caller of their outer call, and its day. */
export function withInnerCalls(pipeline: Pipeline, clock: Clock): Pipeline {
  return {
    ...pipeline,
    run(call) {
      if (belongsHere(call)) return pipeline.run(call);
      const { conversation, turn, run, caller, weak } = call.identity;
      const { at: outerAt } = ambient();
      const at = findInstant(call.tool.contract, call.periodEndsAt, [outerAt, clock.now()]) ?? outerAt;
      const inner = { conversation, turn, run, caller, at, weak: weak === true ? true : undefined };
      return runAs(inner, () => pipeline.run(call));
    },
  };
}

/** The code around the call has the same identity, and no period could end during its run. Most calls are like that. */
export function belongsHere({ identity, periodEndsAt, problem }: Call): boolean {
  const { conversation, turn, run, caller } = ambient();
  const isSame =
    conversation === identity.conversation &&
    turn === identity.turn &&
    run === identity.run &&
    caller === identity.caller;
  // A call that has a problem may have no identity.
  return (isSame && periodEndsAt === null) || problem !== undefined;
}

/** An instant in the call's calendar period; undefined if it has none. */
export function findInstant(
  { per }: Contract,
  periodEndsAt: number | null,
  likely: readonly (Date | number | undefined)[],
): number | undefined {
  if (typeof per !== 'object' || periodEndsAt === null) return undefined;
  const instants = likely.flatMap((each) => (each === undefined ? [] : Number(each)));
  return instants.find((at) => calendarSlot(per, at).endsAt === periodEndsAt) ?? periodEndsAt - 1;
}
