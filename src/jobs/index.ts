// Guarded commands: what `semel run`, `once`, `step` and their descendants do, without their words.

export { type ChildEnding, mostBytes } from './child.ts';
export { type Inside, insideOf } from './context.ts';
export { type EffectReport, type EffectValue, resultBytes, runEffect } from './effect.ts';
export { type Holder, shortestLeaseMs } from './holder.ts';
export { type JobReport, runJob } from './job.ts';
export { isAlive, lifeFolder, lifeProblem, ownerOf, shownOwner } from './liveness.ts';
export { bytesOf } from './output.ts';
export { pick, picksOf, seedOf, wordsOf } from './pick.ts';
export { fieldOf, recentWork } from './recent.ts';
export { contractName, type Ids, isReserved } from './run-id.ts';
export { type JobSlot, periodNamed, slotOf, units } from './slot.ts';
