// The environment of a server that the proxy starts: that of the proxy, without what is a secret of semel alone. What the
// server needs of it all the same is passed by name.

export interface ServerEnvOptions {
  /** The ledger is in Postgres, so that the variables of its client are semel's own. */
  readonly isPostgres: boolean;
  /** Names to pass on all the same. */
  readonly passed: readonly string[];
}

/** They open the ledger, speak to others in the operator's name, or grant what only the operator may. */
const ownSecrets = [
  'SEMEL_STORE',
  'SEMEL_MCP_TOKEN',
  'SEMEL_MCP_AUTHORIZATION',
  'SEMEL_HANDOFF_KEY',
  'SEMEL_OPERATOR',
];
const postgresSecrets = [
  'PGPASSWORD',
  'PGPASSFILE',
  'PGSERVICE',
  'PGSERVICEFILE',
  'PGSSLKEY',
  'PGSSLPASSWORD',
];

export function serverEnv(
  env: Readonly<Record<string, string | undefined>>,
  { isPostgres, passed }: ServerEnvOptions,
): Record<string, string | undefined> {
  const kept = new Set([...ownSecrets, ...(isPostgres ? postgresSecrets : [])]);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !kept.has(name) || passed.includes(name)));
}
