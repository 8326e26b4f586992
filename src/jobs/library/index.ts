// What `semel.job` is made of, besides its definition.

export type { RecentWork } from '../slots/recent.ts';
export type { Artifact, ArtifactOptions } from './artifact.ts';
export { type JobContext, runFunction } from './run.ts';
export type { Seed } from './seed.ts';
export type { Steps } from './steps.ts';
