// The ledger: verdicts, events, and patience with the store.

export type { CacheLimits } from './cache.ts';
export { wasRefusedUnasked } from './circuit.ts';
export type { Lost, Verdict } from './decide.ts';
export { type EventHub, type EventName, eventNames, type SemelEvents } from './events.ts';
export { type Asker, createLedger, type Ledger, type LedgerOptions } from './ledger.ts';
export { pause } from './patience.ts';
