// The public object, built from everything below it.

export type { Begun, OpenAttempt } from './begin.ts';
export { type Ambient, ambient, namedCaller } from './calls/ambient.ts';
export type { KeyInfo } from './calls/key-info.ts';
export type {
  CallOptions,
  Classify,
  ClassifyTable,
  Path,
  Replayed,
  ToolDefinition,
  ToolFunction,
} from './definition.ts';
export type { Limits, OnceOptions, SemelOptions } from './options.ts';
export { commandOptions } from './place/command-options.ts';
export { readEnvironment } from './place/environment.ts';
export { loginName } from './place/login.ts';
export type { InstanceMode } from './place/mode.ts';
export { listRoots, type Root, rootsNamespace, suggestNamespace } from './place/roots.ts';
export { lazyStoreAt, type StoreChoice, storeAt } from './place/store-choice.ts';
export type { Resolution } from './records/decisions.ts';
export {
  findRecordProblem,
  type PortableEvent,
  type PortableRecord,
  type PortableRetention,
} from './records/portable.ts';
export type { RecordInfo } from './records/record-info.ts';
export type {
  ActOptions,
  DoubtGroup,
  Doubts,
  RecordQuery,
  Records,
  ResolveOptions,
} from './records/records.ts';
export type { ExportQuery, ImportResult, Transfer } from './records/transfer.ts';
export { createSemel, type Semel } from './semel.ts';
export type { StillOpen, SweepOptions, SweepReport } from './sweep.ts';
export {
  type Clone,
  type CloneChanges,
  type CloneTool,
  clonerOf,
  forgetTool,
  leaveClaim,
  markExternal,
  overrideStore,
  setCloner,
  warnerOf,
} from './tool-internals.ts';
