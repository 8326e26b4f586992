// Many items, one record each: what is finished is not done again, whatever happens to the rest.

export { type BatchOptions, runBatch } from './batch.ts';
export { type EachOptions, runEach } from './each.ts';
export { progressBar } from './progress-bar.ts';
export type { BatchProgress, BatchReport, ItemOutcome, ItemProblem } from './report.ts';
