// The ledger over HTTP, for programs in any language: `semel serve`.

import { isSemelError, SemelError } from '../core/errors.ts';
import { NotLanded } from '../core/signals.ts';
import type { PolicyFile } from '../mcp/index.ts';
import { createSemel, overrideStore, rootsNamespace } from '../semel/index.ts';
import { memoryStore } from '../store/memory.ts';
import type { Store } from '../store/store.ts';
import { type RunningServer, type Served, type ServeOptions, serve } from './server.ts';
import { createSpaces } from './space.ts';
import { createTokens, type TokenEntry } from './tokens.ts';
import { createServedTools } from './tools.ts';

export { endpoints } from './endpoints.ts';
export { describeApi } from './openapi.ts';
export { statusOf } from './problem.ts';
export type { RunningServer, Served } from './server.ts';
export {
  digestToken,
  makeToken,
  type Role,
  readTokenFile,
  roles,
  type TokenEntry,
} from './tokens.ts';

export interface StartOptions extends Pick<ServeOptions, 'listen' | 'tls' | 'hosts' | 'origins' | 'version'> {
  readonly store: Store;
  readonly policies: PolicyFile;
  readonly mayDefine: boolean;
  readonly tokens: readonly TokenEntry[];
  readonly onWarning: (message: string) => void;
  readonly onRequest?: (request: Served) => void;
}

/** Closing it closes the store. */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { store, policies, mayDefine, tokens, onWarning, ...rest } = options;
  if (tokens.length === 0)
    throw new SemelError('INVALID_ARGS', 'The server has no token.', { path: 'tokens', next: 'Pass one.' });
  checkPolicies(policies);
  await store.open();
  const spaces = createSpaces({ store, policies, mayDefine, onWarning });
  const server = await serve({
    ...rest,
    spaces,
    tokens: createTokens(tokens),
    isReady: () => canWrite(store),
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
