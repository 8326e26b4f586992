// What the Postgres store exports.

export type { PgLike, PostgresClient, PostgresJsLike } from './client.ts';
export { type PostgresStoreOptions, postgresStore } from './store.ts';
