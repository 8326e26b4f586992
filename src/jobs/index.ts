// Guarded commands: what `semel run`, `once`, `step` and their descendants do, without their words.

export { type Inside, insideOf } from './context.ts';
export { type EffectReport, type EffectValue, resultBytes, runEffect } from './effect.ts';
export { type JobReport, runJob } from './job.ts';
export { type ChildEnding, mostBytes } from './life/child.ts';
export { type Holder, shortestLeaseMs } from './life/holder.ts';
export { isAlive, lifeFolder, lifeProblem, ownerOf, shownOwner } from './life/liveness.ts';
export { bytesOf } from './output.ts';
export { pick, picksOf, seedOf, wordsOf } from './slots/pick.ts';
export { fieldOf, recentWork } from './slots/recent.ts';
export { contractName, type Ids, isReserved } from './slots/run-id.ts';
export { type JobSlot, periodNamed, slotOf, units } from './slots/slot.ts';
