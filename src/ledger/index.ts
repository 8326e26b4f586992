// The ledger: answers, events, and requests that outlast a slow store.

export { type Answer, type LostAnswer, toAnswer } from './answer.ts';
export type { CachedRecord, CacheLimits } from './cache.ts';
export { type EventHub, type EventName, eventNames, type SemelEvents } from './events.ts';
export { type AuditDetail, createLedger, type Ledger, type LedgerOptions } from './ledger.ts';
export type { Requester } from './store-request.ts';
export { CallbackTimer, createTimers, sleep, type Timer, type TimerList, type Timers } from './timers.ts';
