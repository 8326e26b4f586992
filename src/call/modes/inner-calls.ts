// Where the calls belong that are made from inside a run: where their outer call does, however it was named. A sweep that
// continues the outer call later knows no more than its record, and must meet the same inner records.

import type { Clock } from '../../core/clock.ts';
import type { Contract } from '../../core/contract/contract.ts';
import { calendarSlot } from '../../core/contract/period.ts';
import { ambient, type Inherited } from '../ambient.ts';
import type { Call } from '../call.ts';

/**
 * The conversation, turn, run and caller of the call, and its day. Undefined: the code around it has the same identity, and
 * no period could end during its run. Most calls are like that.
 */
export function identityInside(
  { identity, periodEndsAt, problem, tool }: Call,
  clock: Clock,
): Inherited | undefined {
  // A call that has a problem may have no identity.
  if (problem !== undefined) return undefined;
  const outer = ambient();
  const { conversation, turn, run, caller } = identity;
  const isSame =
    conversation === outer.conversation &&
    turn === outer.turn &&
    run === outer.run &&
    caller === outer.caller;
  if (isSame && periodEndsAt === null) return undefined;
  const at =
    periodEndsAt === null
      ? outer.at
      : (findInstant(tool.contract, periodEndsAt, [outer.at, clock.now()]) ?? outer.at);
  const weak = identity.weak === true ? true : undefined;
  return { conversation, turn, run, caller, at, weak, permissions: outer.permissions };
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
