// Guarded commands: what `semel run`, `once`, `step` and the commands inside them do, without options and messages.

export { currentRun, type RunContext } from './context.ts';
export { commandField, resultBytes, runEffect } from './effect.ts';
export type { GuardOptions, Report, StoredValue } from './guarded-command.ts';
export { findRun, runJob } from './job.ts';
export { type ChildEnding, maxOutputBytes } from './liveness/child.ts';
export { type Holder, minLeaseMs } from './liveness/holder.ts';
export {
  isGuardGone,
  isOwnerAlive,
  livenessFolder,
  livenessProblem,
  ownerWithPipe,
  shownOwner,
} from './liveness/liveness.ts';
export { findAtLeast } from './lock.ts';
export { toBytes } from './output.ts';
export { pick, picksOf, seedOf, seedWords } from './slots/pick.ts';
export { readField, recentWork } from './slots/recent.ts';
export { contractName, type Ids, isReserved } from './slots/run-id.ts';
export { isUnit, type JobSlot, periodNamed, slotOf, units } from './slots/slot.ts';
