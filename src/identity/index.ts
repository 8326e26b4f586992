// The public module `semel/identity`: derives identities from engines, queues and schedulers, and carries hand-offs. Pure
// functions of plain input: imports no engine.

export { handoffHeader, handoffMeta, handoffVariable } from '../core/handoff-places.ts';
export {
  handoffFromEnvironment,
  handoffFromHeaders,
  handoffFromMeta,
  handoffToEnvironment,
  handoffToHeaders,
  handoffToMeta,
} from './handoff.ts';
export type { HeadersLike } from './headers.ts';
export type { RunIdentity, TurnIdentity } from './ids.ts';
export { type BullJob, fromBullMQ, fromQStash, fromSqs, type SqsMessage } from './queues.ts';
export {
  type CronJobNames,
  type Environment,
  fromCloudScheduler,
  fromGitHubActions,
  fromKubernetesCronJob,
} from './schedules.ts';
export {
  type DbosPlace,
  fromDbos,
  fromInngest,
  fromRestate,
  fromTemporal,
  fromTrigger,
  type InngestContext,
  type RestateRequest,
  type StepOption,
  type TemporalInfo,
  type TriggerContext,
} from './workflows.ts';
