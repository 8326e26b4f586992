// The path of a call: one pipeline for all of them.

export {
  type Ambient,
  ambient,
  handoff,
  type Inherited,
  namedCaller,
  noAmbient,
  nobody,
  type RecordedIdentity,
  readCaller,
  runAs,
  within,
  withoutUndefined,
} from './ambient.ts';
export type { Attempt } from './attempt.ts';
export {
  Call,
  type CallMaker,
  type CallParts,
  type Identity,
  type ReplayContext,
  type Tool,
  unstoredMaker,
} from './call.ts';
export type {
  Claimant,
  Detached,
  DetachedAttempt,
  Dispatching,
  Report,
  Ticket,
  TicketReports,
} from './detached.ts';
export { isSameCode } from './doubt.ts';
export { type KeyUse, newKeyUse } from './key-use.ts';
export { findInstant } from './modes/inner-calls.ts';
export { isCallsNamespace, isTraceable, isUnique } from './modes/original-turn.ts';
export { threwError } from './modes/own-error.ts';
export { createPipeline, type Pipeline, type PipelineOptions } from './pipeline.ts';
export { emptyReceipt, formatRef, type Receipt, type Result } from './receipt.ts';
export { timeoutError } from './refusals.ts';
export {
  type Body,
  classifyThrown,
  judgeTry,
  neverDispatched,
  prepareAndDispatch,
  type Try,
  tellPartial,
} from './run-tool.ts';
export type { AttemptContext } from './sending/context.ts';
export { describeError, toStoredResult } from './settle.ts';
export { noStepsError, type RunStep, type StepOptions, type StepWork } from './steps.ts';
export { currentCall } from './surroundings.ts';
