// The environment of a server that the proxy starts: the proxy's own, without semel's secrets. Names in `passed` are
// passed anyway. It says that an agent is at work: a server's processes act for a model, which must not judge its own effects.

export interface ServerEnvOptions {
  /** The address of the ledger: the variables that open it are semel's. */
  readonly store: string;
  /** Variables to pass anyway. */
  readonly passed: readonly string[];
}

/** They open the ledger, act in the operator's name, grant the operator's rights, or make alerts look like semel's. */
const ownSecrets = [
  'SEMEL_STORE',
  'SEMEL_TOKEN',
  'SEMEL_WEBHOOK_SECRET',
  'SEMEL_MCP_TOKEN',
  'SEMEL_MCP_AUTHORIZATION',
  'SEMEL_HANDOFF_KEY',
  'SEMEL_OPERATOR',
];
/** By the kind of store that reads them. */
const storeSecrets: readonly (readonly [RegExp, readonly string[]])[] = [
  [
    /^postgres(ql)?:/i,
    ['PGPASSWORD', 'PGPASSFILE', 'PGSERVICE', 'PGSERVICEFILE', 'PGSSLKEY', 'PGSSLPASSWORD'],
  ],
  [/^(s3|dynamodb):/i, ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN']],
];

export function createServerEnv(
  env: Readonly<Record<string, string | undefined>>,
  { store, passed }: ServerEnvOptions,
): Record<string, string | undefined> {
  const ofStore = storeSecrets.flatMap(([kind, names]) => (kind.test(store) ? names : []));
  const withheld = new Set([...ownSecrets, ...ofStore]);
  const others = Object.entries(env).filter(([name]) => !withheld.has(name) || passed.includes(name));
  return { ...Object.fromEntries(others), SEMEL_AGENT: 'mcp' };
}
