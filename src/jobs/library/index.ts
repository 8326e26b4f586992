// What `semel.job` is made of, besides its definition.

export { cron, type JobOptions } from '../definition.ts';
export { shownOwner } from '../liveness/liveness.ts';
export type { RecentWork } from '../slots/recent.ts';
export { isReserved } from '../slots/run-id.ts';
export { periodNamed } from '../slots/slot.ts';
export type { Artifact, ArtifactOptions } from './artifact.ts';
export {
  type DetachedClaim,
  type DetachedWait,
  detachJob,
  detachStep,
  findJobTool,
  type JobTool,
  release,
} from './detached.ts';
export { type JobContext, runFunction } from './run.ts';
export type { Seed } from './seed.ts';
export type { Steps } from './steps.ts';
