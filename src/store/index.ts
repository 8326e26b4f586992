// The seam: what a store promises, and the rules that every store applies.

export type { FarBackend, Found, Removal, Swap, Swapped, Write } from './far-backend.ts';
export { type FarStoreOptions, farStore } from './far-store.ts';
export { matches } from './matching.ts';
export { type MemoryStoreOptions, memoryStore } from './memory.ts';
export type { Migration } from './migration.ts';
export type { About, Name, Raw, RawChange, RawPage, RawQuery, RawRecord } from './raw.ts';
export { type Backend, ruleStore, type Transaction, type Urgency } from './rule-store.ts';
export { isDue } from './rules/prune.ts';
export { contractOf, type Time } from './rules/state.ts';
export type { Standing } from './standing.ts';
export type {
  Act,
  ClaimAnswer,
  ClaimFor,
  ClaimRequest,
  ClearRequest,
  CrossAnswer,
  DispatchRequest,
  EventType,
  Held,
  ListQuery,
  News,
  Page,
  RecordError,
  Refusal,
  RenewAnswer,
  RenewRequest,
  ResolveAnswer,
  ResolveRefusal,
  ResolveRequest,
  Retention,
  Row,
  Seen,
  SettleAnswer,
  SettleRequest,
  Store,
  StoredRecord,
  StoredResult,
  StoreEvent,
  StoreFacts,
} from './store.ts';
