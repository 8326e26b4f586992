// semel/store: the interface of a store, and what an implementation builds on.

export { isDue } from '../rules/prune.ts';
export { contractOf, type Time } from '../rules/state.ts';
export { type Backend, localStore, type Transaction, type Urgency } from './local/local-store.ts';
export { matches } from './matching.ts';
export { type MemoryStoreOptions, memoryStore } from './memory.ts';
export type { Standing } from './move/ledger-state.ts';
export type { About, Name, Raw, RawChange, RawPage, RawQuery, RawRecord } from './move/raw.ts';
export type { Found, RemoteBackend, Removal, Swap, Swapped, Write } from './remote/backend.ts';
export { type RemoteStoreOptions, remoteStore } from './remote/remote-store.ts';
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
  Migration,
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
