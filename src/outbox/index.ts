// In the caller's own transaction: effects that commit with it, and intents that are delivered after it.

export type { Delivery } from './delivery.ts';
export { runInTransaction } from './in-transaction.ts';
export { drain, outboxOf, type RelayOptions, type RelayReport, relay } from './relay.ts';
export { mayLandTwice } from './retry.ts';
export { type Staged, type StageOptions, stage } from './stage.ts';
export { readCall } from './staged-call.ts';
