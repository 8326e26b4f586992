// Guarded commands: what `semel run`, `once`, `step` and their kin do, without their words.

export { type ChildEnding, mostBytes, tailBytes } from './child.ts';
export type { IfBusy } from './claim.ts';
export { type Inside, insideOf } from './context.ts';
export { type EffectReport, type EffectValue, resultBytes, runEffect } from './effect.ts';
export { told } from './ending.ts';
export type { Holder } from './holder.ts';
export { shortestLeaseMs } from './holder.ts';
export { type JobOptions, type JobReport, runJob } from './job.ts';
export { isAlive, lifeFolder, ownerOf, shownOwner } from './life.ts';
export { bytesOf } from './output.ts';
export { draw, earlierPicks, pick, picksOf, seedOf, wordsOf } from './pick.ts';
export { type Done, fieldOf, recentWork } from './recent.ts';
export { contractName, type Ids, isReserved } from './run-id.ts';
export { type JobSlot, periodNamed, type Schedule, slotOf, units } from './slot.ts';
