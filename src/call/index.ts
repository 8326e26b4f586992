// The path of a call: one pipeline for all of them.

export type { Attempt } from './attempt.ts';
export {
  Call,
  type CallMaker,
  type CallParts,
  type Identity,
  nothingMore,
  type ReplayContext,
  type Tool,
  type VerifyContext,
} from './call.ts';
export { isSameCode } from './doubt.ts';
export { isCallsNamespace, isUnique } from './modes/original-turn.ts';
export { createPipeline, type Pipeline, type PipelineOptions } from './pipeline.ts';
export { emptyReceipt, evidenceOf, type Receipt, type Result, refOf } from './receipt.ts';
export { timedOut } from './refusals.ts';
export { type Body, meaningOf, neverDispatched, reachLine, type Try } from './run-tool.ts';
export type { AttemptContext } from './sending/context.ts';
export { messageOf, resultOf } from './settle.ts';
export { landed, notLanded, unsure, type Verification } from './verification.ts';
