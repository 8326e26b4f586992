// The runner: one pipeline for every call.

export type { Attempt } from './attempt.ts';
export type { Call, Identity, ReplayContext, Tool, VerifyContext } from './call.ts';
export { messageOf, resultOf } from './conclude.ts';
export type { AttemptContext } from './context.ts';
export { isSameCode } from './doubt.ts';
export type { Body } from './execution.ts';
export { isCallsNamespace, isUnique } from './first-turn.ts';
export { emptyReceipt, evidenceOf, type Receipt, type Result, refOf } from './receipt.ts';
export { timedOut } from './refusals.ts';
export { createRunner, type Runner, type RunnerOptions } from './runner.ts';
export { meaningOf, neverCrossed, type Try } from './tries.ts';
export { landed, notLanded, unsure, type Verification } from './verification.ts';
