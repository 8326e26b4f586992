// The ledger: verdicts, events, and patience with the store.

export type { Answer, Lost } from './answer.ts';
export type { CacheLimits, Kept } from './cache.ts';
export { type EventHub, type EventName, eventNames, type SemelEvents } from './events.ts';
export { type Caller, createLedger, type Ledger, type LedgerOptions } from './ledger.ts';
export { pause } from './pause.ts';
export type { Asker } from './question.ts';
export { Alarm, createTimers, type Timed, type TimerList, type Timers } from './timers.ts';
