// Guarded commands: what `semel run`, `once`, `step` and the commands inside them do, without options and messages. The door of
// `semel.job` is library/index.ts: the command does not load it.

export { currentRun, type RunContext, runEnv } from './context.ts';
export { minLeaseMs } from './definition.ts';
export { resultBytes, runEffect } from './effect.ts';
export {
  commandVerifier,
  commandWork,
  type GuardOptions,
  type Report,
  type StoredValue,
} from './guarded-command.ts';
export { findRun, nameRun, rerunsByItself, runJob } from './job.ts';
export { type ChildEnding, maxOutputBytes } from './liveness/child.ts';
export type { Holder } from './liveness/holder.ts';
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
export { isUnit, type JobSlot, periodNamed, slotOf, units, weekdayOf } from './slots/slot.ts';
