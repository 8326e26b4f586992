// What the SQLite store exports.

export { type Backup, type Restoring, restoreLedger } from './backup.ts';
export type { SqliteLike, SqliteStatement, SqliteValue } from './client.ts';
export { defaultPath } from './file/place.ts';
export type { Machine } from './machine.ts';
export { type SqliteStore, type SqliteStoreOptions, sqliteStore } from './store.ts';
