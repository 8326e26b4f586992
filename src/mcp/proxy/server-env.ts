// The environment of a server that the proxy starts: the proxy's own, without semel's secrets. Names in `passed` are
// passed anyway. It says that an agent is at work: a server's processes act for a model, which must not judge its own effects.

export interface ServerEnvOptions {
  /** The ledger is in Postgres, so the Postgres client's variables are semel's. */
  readonly isPostgres: boolean;
  /** Variables to pass anyway. */
  readonly passed: readonly string[];
}

/** They open the ledger, act in the operator's name, or grant the operator's rights. */
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

export function createServerEnv(
  env: Readonly<Record<string, string | undefined>>,
  { isPostgres, passed }: ServerEnvOptions,
): Record<string, string | undefined> {
  const withheld = new Set([...ownSecrets, ...(isPostgres ? postgresSecrets : [])]);
  const others = Object.entries(env).filter(([name]) => !withheld.has(name) || passed.includes(name));
  return { ...Object.fromEntries(others), SEMEL_AGENT: 'mcp' };
}
