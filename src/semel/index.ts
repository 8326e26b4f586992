// The public object, built from everything below it.

import './node-version.ts';

export { type Ambient, ambient, namedCaller } from './ambient.ts';
export type { Begun, OpenAttempt } from './begin.ts';
export { commandOptions } from './command-options.ts';
export type { Resolution } from './decisions.ts';
export type {
  CallOptions,
  ClassifyTable,
  Path,
  Replayed,
  SchemaToolDefinition,
  ToolDefinition,
  ToolFunction,
} from './definition.ts';
export { environmentText } from './environment.ts';
export { forgetTool } from './forget-tool.ts';
export type { KeyInfo } from './key-info.ts';
export { loginName } from './login.ts';
export type { Limits, OnceOptions, SemelOptions } from './options.ts';
export { type PortableEvent, type PortableRecord, type PortableRetention, problemOf } from './portable.ts';
export { playedBy, type Rebuild, type Rebuilding, rebuildOf, type Sibling } from './rebuild.ts';
export type { RecordInfo } from './record-info.ts';
export type { ActOptions, DoubtGroup, Doubts, RecordQuery, Records } from './records.ts';
export { ownName, type Root, rootsIn, rootsKnown } from './roots.ts';
export { createSemel, type Semel } from './semel.ts';
export { type StoreChoice, storeAt, storeUnder } from './store-of.ts';
export type { SweepOptions, SweepReport } from './sweep.ts';
export { warningOf } from './tool-warning.ts';
export type { ExportQuery, ImportResult, Transfer } from './transfer.ts';
