// The public object, built from everything below it.

export { type Ambient, ambient, findInstant, namedCaller, nobody, runAs } from '../call/index.ts';
export type { Begun, OpenAttempt } from './begin.ts';
export { type CallerTransaction, callInTransaction } from './caller-transaction.ts';
export { noOptions } from './calls/call-identity.ts';
export type { KeyInfo } from './calls/key-info.ts';
export { toRecordedCall } from './calls/recorded-call.ts';
export type {
  ArgsOf,
  CallOptions,
  Classify,
  ClassifyTable,
  Given,
  InputOf,
  Path,
  Replayed,
  Storable,
  ToolDefinition,
  ToolFunction,
} from './definition.ts';
export { checkOnceId, type Limits, type OnceOptions, type SemelOptions } from './options.ts';
export { commandOptions } from './place/command-options.ts';
export { readEnvironment } from './place/environment.ts';
export { loginName } from './place/login.ts';
export type { InstanceMode } from './place/mode.ts';
export { listRoots, type Root, rootsNamespace, suggestNamespace } from './place/roots.ts';
export { lazyStoreAt, resolveStore, type StoreChoice, storeAt } from './place/store-choice.ts';
export type { Resolution } from './records/decisions.ts';
export {
  findRecordProblem,
  type PortableEvent,
  type PortableRecord,
  type PortableRetention,
} from './records/portable.ts';
export { type RecordInfo, toRecordInfo } from './records/record-info.ts';
export type {
  ActOptions,
  DoubtGroup,
  Doubts,
  RecordQuery,
  Records,
  ResolveOptions,
} from './records/records.ts';
export { alertsNamespace, isInternalNamespace } from './records/records.ts';
export {
  type CountedRecord,
  type Counts,
  createTally,
  type Slot,
  type Stats,
  type Tally,
} from './records/tally.ts';
export { findTextPlaces, inKey, isInKey, isRecordId, withoutFence } from './records/text-places.ts';
export type { ExportQuery, ImportResult, Transfer } from './records/transfer.ts';
export { createSemel, type Semel } from './semel.ts';
export type { StillOpen, SweepOptions, SweepReport, Swept } from './sweep.ts';
export {
  type Clone,
  type CloneChanges,
  type CloneTool,
  clonerOf,
  type Engine,
  engineOf,
  ensureLease,
  enterAttempt,
  forgetTool,
  leaveClaim,
  markExternal,
  overrideStore,
  setCloner,
  warnerOf,
} from './tool-internals.ts';
