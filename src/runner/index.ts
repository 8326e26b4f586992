// The runner: one pipeline for every call.

export type { Attempt } from './attempt.ts';
export type { Call, Identity, ReplayContext, Tool, VerifyContext } from './call.ts';
export { messageOf, resultOf } from './conclude.ts';
export type { AttemptContext } from './context.ts';
export { emptyReceipt, evidenceOf, type Receipt, type Result } from './receipt.ts';
export { type Body, createRunner, type Runner, type RunnerOptions } from './runner.ts';
export { meaningOf, type Try } from './tries.ts';
export { landed, notLanded, unsure, type Verification } from './verification.ts';
