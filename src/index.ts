// The public names of `semel`, one by one.

export {
  type BatchOptions,
  type BatchProgress,
  type BatchReport,
  type EachOptions,
  type ItemOutcome,
  type ItemProblem,
  progressBar,
} from './batch/index.ts';
export type { AttemptContext, Receipt, Result } from './call/index.ts';
export type { Consumer, ConsumerOptions, Decision, QueueMessage } from './consumer/index.ts';
export { type Clock, type Random, systemClock, systemRandom } from './core/clock.ts';
export type { Classified, RequestFate, Via } from './core/contract/classify.ts';
export type { Contract, EarlierForm, IfBusy, Mode, OnDoubt, RetryPolicy } from './core/contract/contract.ts';
export type { Duration } from './core/contract/duration.ts';
export { oneRequest, type Seen } from './core/contract/one-request.ts';
export { type CalendarPeriod, day, hour, minute, month, type Per, week } from './core/contract/period.ts';
export type { Provider } from './core/contract/provider.ts';
export type { StandardSchema } from './core/contract/standard-schema.ts';
export type { Effect, Outcome, Status } from './core/contract/words.ts';
export {
  type ErrorCode,
  type ErrorValue,
  errorCodes,
  isSemelError,
  type Retry,
  retryOf,
  SemelError,
} from './core/errors.ts';
export type { Normaliser } from './core/key/identity.ts';
export { AlreadyLanded, MaybeLanded, NotLanded, PartialSuccess, Rejected } from './core/signals.ts';
export {
  landed,
  notLanded,
  unsure,
  type Verification,
  type VerifyContext,
} from './core/verification.ts';
export {
  type CallInTransaction,
  createSemel,
  type OutboxRelay,
  type Semel,
  type Tool,
} from './create-semel.ts';
export {
  type CronSchedule,
  cron,
  type Job,
  type JobFailure,
  type JobHolder,
  type JobOptions,
  type JobOutcome,
  type JobRunOptions,
  type RunInfo,
} from './jobs/definition.ts';
export type {
  Artifact,
  ArtifactOptions,
  JobContext,
  RecentWork,
  Seed,
  Steps,
} from './jobs/library/index.ts';
export { type EventName, eventNames, type SemelEvents } from './ledger/index.ts';
export type { Delivery, RelayOptions, RelayReport, Staged, StageOptions } from './outbox/index.ts';
export type {
  ActOptions,
  Ambient,
  Begun,
  CallOptions,
  Classify,
  ClassifyTable,
  DoubtGroup,
  Doubts,
  ExportQuery,
  ImportResult,
  InstanceMode,
  Limits,
  OnceOptions,
  OpenAttempt,
  Path,
  PortableEvent,
  PortableRecord,
  PortableRetention,
  RecordInfo,
  RecordQuery,
  Records,
  Replayed,
  Resolution,
  ResolveOptions,
  SemelOptions,
  StillOpen,
  StoreChoice,
  SweepOptions,
  SweepReport,
  Swept,
  ToolDefinition,
  ToolFunction,
  Transfer,
} from './semel/index.ts';
export type { Page, Store, StoreEvent, StoreFacts } from './store/store.ts';
