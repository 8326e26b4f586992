// One namespace as the server uses it: its ledger and its tools.

import { SemelError } from '../core/errors.ts';
import { limits } from '../core/limits.ts';
import type { PolicyFile } from '../mcp/index.ts';
import {
  createSemel,
  type Engine,
  engineOf,
  isInternalNamespace,
  overrideStore,
  type Semel,
} from '../semel/index.ts';
import type { Store } from '../store/store.ts';
import { createSigningKey, createTickets, type Tickets } from './execution/ticket.ts';
import { createServedTools, type ServedTools } from './execution/tools.ts';

export interface Space {
  readonly semel: Semel;
  readonly engine: Engine;
  readonly tools: ServedTools;
  readonly tickets: Tickets;
}

export interface Spaces {
  of(namespace: string): Space;
  list(): readonly Space[];
  close(): Promise<void>;
}

export interface SpacesOptions {
  readonly store: Store;
  readonly policies: PolicyFile;
  /** Clients may define tools that the policy file does not have. */
  readonly mayDefine: boolean;
  readonly onWarning: (message: string) => void;
  readonly onSpace?: (space: Space) => void;
}

export function createSpaces({ store, policies, mayDefine, onWarning, onSpace }: SpacesOptions): Spaces {
  const known = new Map<string, Space>();
  const shared = overrideStore(store, {
    // Advice to clients names the command, but not where the operator keeps the ledger.
    open: async () => ({ ...(await store.open()), address: '' }),
    close: async () => undefined,
  });
  const signingKey = createSigningKey(store);
  const defined = { count: 0 };
  return {
    of(namespace) {
      const found = known.get(namespace);
      if (found !== undefined) return found;
      // These hold notes of semel's own, which are not records of calls.
      if (isInternalNamespace(namespace))
        throw new SemelError('NOT_PERMITTED', `${namespace} is semel's own.`, {
          next: 'Use another namespace.',
        });
      if (known.size >= limits.servedNamespaces)
        throw new SemelError('NOT_PERMITTED', `This server uses ${known.size} namespaces already.`, {
          next: 'Start another server for more.',
        });
      const semel = createSemel({
        store: shared,
        namespace,
        mode: 'enforce',
        // Another server on the same store may have decided otherwise meanwhile.
        cache: false,
        // Without the store nobody knows whether it was done: a client may not execute it.
        unguarded: false,
        onWarning,
      });
      const space = {
        semel,
        engine: engineOf(semel),
        tools: createServedTools(semel, policies, { mayDefine, defined }),
        tickets: createTickets(namespace, signingKey),
      };
      known.set(namespace, space);
      onSpace?.(space);
      return space;
    },
    list: () => [...known.values()],
    async close() {
      await Promise.all([...known.values()].map(({ semel }) => semel.close({ grace: 0 })));
      await store.close();
    },
  };
}
