// The ledger over HTTP, for programs in any language: `semel serve`.

import { fileURLToPath } from 'node:url';
import { systemClock, systemRandom } from '../core/clock.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { recordId } from '../core/key/key.ts';
import { NotLanded } from '../core/signals.ts';
import { type PolicyFile, readPolicyFile } from '../mcp/index.ts';
import {
  createSemel,
  overrideStore,
  resolveStore,
  rootsNamespace,
  type StoreChoice,
} from '../semel/index.ts';
import { contentType, createMetrics } from '../signals/index.ts';
import { memoryStore } from '../store/memory.ts';
import type { Store } from '../store/store.ts';
import { isLoopback } from './access/admission.ts';
import { createLogins } from './access/logins.ts';
import { createProxies } from './access/proxy.ts';
import { createTokens, type TokenEntry } from './access/tokens.ts';
import { loadPages } from './exchange/pages.ts';
import { createServedTools } from './execution/tools.ts';
import { type RunningServer, type ServeOptions, serve } from './server.ts';
import { createSpaces } from './space.ts';

export { isLoopback } from './access/admission.ts';
export {
  digestToken,
  makeToken,
  type Role,
  readTokenFile,
  roles,
  type TokenEntry,
} from './access/tokens.ts';
export { endpoints } from './endpoints.ts';
export { statusOf } from './exchange/problem.ts';
export { describeApi } from './openapi.ts';
export type { RunningServer, Served } from './server.ts';

/** The dashboard's files in the package; the sources have them after `npm run build`. */
const dashboardFolder = fileURLToPath(new URL('../../dist/dashboard', import.meta.url));

export interface StartOptions
  extends Partial<Pick<ServeOptions, 'listen' | 'version'>>,
    Pick<ServeOptions, 'tls' | 'hosts' | 'origins' | 'onRequest'> {
  /** A store, a database client or an address. @default SEMEL_STORE, otherwise the user's ledger */
  readonly store?: StoreChoice;
  /** As in semel.policy.json. @default no tools */
  readonly policies?: PolicyFile;
  /** Clients may define tools that `policies` does not have. @default false */
  readonly mayDefine?: boolean;
  readonly tokens: readonly TokenEntry[];
  /** The proxies in front of it, which do TLS: addresses, or networks such as 10.0.0.0/8. Nobody else may connect then. */
  readonly behindProxy?: readonly string[];
  /** Called after each decision about a record: its history goes when a forgotten record is removed. */
  readonly onAct?: (act: AdminAct) => void;
  /** The folder of the dashboard's files. @default that of the package */
  readonly dashboard?: string;
  /** @default process.emitWarning */
  readonly onWarning?: (message: string) => void;
}

export interface AdminAct {
  readonly act: string;
  readonly namespace: string;
  readonly tool: string;
  /** Its id. */
  readonly record: string;
  /** The name of the token. */
  readonly by: string;
}

/** The port of `semel serve`. */
export const defaultPort = 8971;

/** Closing it closes the store. */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const {
    tokens,
    mayDefine = false,
    behindProxy = [],
    dashboard = dashboardFolder,
    onAct,
    ...rest
  } = options;
  const { listen = { host: '127.0.0.1', port: defaultPort }, version = '1' } = options;
  const { onWarning = (message: string) => process.emitWarning(message, 'SemelWarning') } = options;
  if (tokens.length === 0)
    throw new SemelError('INVALID_ARGS', 'The server has no token.', { path: 'tokens', next: 'Pass one.' });
  const isRemote = 'host' in listen && !isLoopback(listen.host);
  const proxies = behindProxy.length === 0 ? undefined : createProxies(behindProxy);
  if (isRemote && options.tls === undefined && proxies === undefined)
    throw new SemelError(
      'INVALID_ARGS',
      `${'host' in listen ? listen.host : ''} is reachable from other machines, and tokens would travel unencrypted.`,
      {
        path: 'listen.host',
        next: 'Pass `tls`, or the address of the proxy that does TLS in front of it as `behindProxy`.',
      },
    );
  const policies = readPolicyFile(JSON.stringify(options.policies ?? { version: 1 }), 'policies');
  checkPolicies(policies);
  const store = resolveStore(options.store, systemClock, systemRandom);
  await store.open();
  const metrics = createMetrics({ store, version });
  const spaces = createSpaces({
    ...{ store: metrics.timed(store), policies, mayDefine, onWarning },
    onSpace({ semel }) {
      metrics.listen(semel);
      if (onAct === undefined) return;
      semel.on('resolved', ({ namespace, contract, key, act, by }) =>
        onAct({ act, namespace, tool: contract, record: recordId(namespace, key), by }),
      );
    },
  });
  const server = await serve({
    ...rest,
    ...('host' in listen && proxies !== undefined ? { proxies } : {}),
    listen,
    version,
    spaces,
    logins: createLogins(createTokens(tokens)),
    pages: loadPages(dashboard),
    metrics: { contentType, text: metrics.text },
    onFailure: atMostOnceASecond(onWarning),
    isReady: shareForAWhile(() => canWrite(store)),
  }).catch(async (error) => {
    await spaces.close();
    throw error;
  });
  return {
    url: server.url,
    async close(graceMs) {
      await server.close(graceMs);
      await spaces.close();
    },
  };
}

/** A tool that cannot be defined is reported now, not at its first call. */
function checkPolicies(policies: PolicyFile): void {
  const semel = createSemel({ store: memoryStore(), namespace: 'check', onWarning: () => undefined });
  createServedTools(semel, policies, { mayDefine: false });
}

/** Clients that try again must not fill the operator's log. */
function atMostOnceASecond(say: (message: string) => void): (message: string) => void {
  let lastAt = Number.NEGATIVE_INFINITY;
  return (message) => {
    if (performance.now() - lastAt < 1_000) return;
    lastAt = performance.now();
    say(message);
  };
}

/** Anybody may ask without a token, so that asking often must cost no more than asking once a second. */
function shareForAWhile(ask: () => Promise<boolean>): () => Promise<boolean> {
  let last: Promise<boolean> | undefined;
  return () => {
    if (last !== undefined) return last;
    const asked = ask();
    last = asked;
    const end = () => {
      last = undefined;
    };
    void asked.catch(() => undefined).finally(() => setTimeout(end, 1_000).unref());
    return asked;
  };
}

/** Claims a record of semel's own and releases it: both are writes, and nothing is left to prune. */
async function canWrite(store: Store): Promise<boolean> {
  const shared = overrideStore(store, { close: async () => undefined });
  const namespace = rootsNamespace('readyz');
  const semel = createSemel({ store: shared, namespace, cache: false, prune: false, mode: 'enforce' });
  try {
    await semel.once('readyz', 'probe', { timeout: '5s' }, () => {
      throw new NotLanded('a probe');
    });
    return false;
  } catch (error) {
    // Another server's probe may be running.
    return isSemelError(error, 'NOT_LANDED') || isSemelError(error, 'IN_FLIGHT');
  } finally {
    await semel.close({ grace: 0 });
  }
}
