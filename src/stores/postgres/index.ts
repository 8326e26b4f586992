// The door of the Postgres store.

export type { PgLike, PostgresClient, PostgresJsLike } from './client.ts';
export { type PostgresStoreOptions, postgresStore } from './store.ts';
