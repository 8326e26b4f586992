// The public names of `semel`, one by one.

export type { AttemptContext, Receipt, Result } from './call/index.ts';
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
export { type EventName, eventNames, type SemelEvents } from './ledger/index.ts';
export {
  type ActOptions,
  type Ambient,
  type Begun,
  type CallOptions,
  type Classify,
  type ClassifyTable,
  createSemel,
  type DoubtGroup,
  type Doubts,
  type ExportQuery,
  type ImportResult,
  type InstanceMode,
  type Limits,
  type OnceOptions,
  type OpenAttempt,
  type Path,
  type PortableEvent,
  type PortableRecord,
  type PortableRetention,
  type RecordInfo,
  type RecordQuery,
  type Records,
  type Replayed,
  type Resolution,
  type ResolveOptions,
  type Semel,
  type SemelOptions,
  type StillOpen,
  type StoreChoice,
  type SweepOptions,
  type SweepReport,
  type ToolDefinition,
  type ToolFunction,
  type Transfer,
} from './semel/index.ts';
export type { Page, Store, StoreEvent, StoreFacts } from './store/store.ts';
