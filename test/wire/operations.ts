// Every operation of a store over a wire, as data: its preparation and its request. Each gives the same answer when it is
// repeated.

import type { Store } from '../../src/store/index.ts';
import { type Attempt, claimRequest, newToken, take } from '../../src/testing/store-contract/attempt.ts';
import { seenIn } from '../../src/testing/store-contract/scene.ts';

export interface Operation {
  readonly name: string;
  /** Not repeatable: if its answer is lost, it stays lost. */
  readonly once?: true;
  /** Does what must come first, and returns the request, which keeps its token. */
  prepare(store: Store, key: string): Promise<() => Promise<unknown>>;
}

const namespace = 'wire';
export const wireNamespace = namespace;

const shortly = { leaseMs: 1, inFlightForMs: 0, networkMs: 0 };

/** Claims, sends, and never comes back; answers when its lease is over. */
async function lapsed(store: Store, key: string): Promise<Attempt> {
  const holder = await take(store, { namespace, key, crossing: true, ...shortly });
  // How long that takes depends on how slow the wire was: the store may be ahead by that much.
  while (!(await store.read(namespace, key))?.inDoubt) await new Promise((resolve) => setTimeout(resolve, 5));
  return holder;
}

/** Some results lie apart from their record. */
const longText = JSON.stringify('x'.repeat(500));

export const operations: readonly Operation[] = [
  {
    name: 'claim',
    async prepare(store, key) {
      const request = claimRequest({ namespace, key, crossing: true });
      return () => store.claim(request);
    },
  },
  {
    name: 'claim that loses',
    async prepare(store, key) {
      await (await take(store, { namespace, key, crossing: true })).succeed();
      const request = claimRequest({ namespace, key });
      return () => store.claim(request);
    },
  },
  {
    name: 'claim that takes over',
    async prepare(store, key) {
      await lapsed(store, key);
      const request = claimRequest({ namespace, key, for: 'verify' });
      return () => store.claim(request);
    },
  },
  {
    name: 'claim under an older key',
    async prepare(store, key) {
      const request = claimRequest({ namespace, key, olderKeys: [`${key}-older`] });
      return () => store.claim(request);
    },
  },
  {
    name: 'renew',
    async prepare(store, key) {
      const holder = await take(store, { namespace, key });
      return () => holder.renew();
    },
  },
  {
    name: 'dispatch',
    async prepare(store, key) {
      const holder = await take(store, { namespace, key });
      return () => holder.dispatch({ prepared: '"the mail"' });
    },
  },
  {
    name: 'clear',
    async prepare(store, key) {
      await lapsed(store, key);
      const verifier = await take(store, { namespace, key, for: 'verify', inFlightForMs: 0, networkMs: 0 });
      return () => verifier.clear({ crossing: true });
    },
  },
  {
    name: 'settle',
    async prepare(store, key) {
      const holder = await take(store, { namespace, key, crossing: true });
      return () => holder.succeed();
    },
  },
  {
    name: 'settle with a long result',
    async prepare(store, key) {
      const holder = await take(store, { namespace, key, crossing: true });
      return () => holder.succeed(longText);
    },
  },
  {
    name: 'settle from a fenced attempt',
    async prepare(store, key) {
      const zombie = await lapsed(store, key);
      await take(store, { namespace, key, for: 'verify' });
      return () => zombie.succeed();
    },
  },
  {
    name: 'resolve',
    async prepare(store, key) {
      await (await take(store, { namespace, key, crossing: true })).settle('unknown');
      const seen = seenIn(await store.read(namespace, key));
      const token = newToken();
      const act = { type: 'landed', result: { text: '"seen"', omitted: null, remoteRef: null } } as const;
      return () =>
        store.resolve({
          namespace,
          key,
          seen,
          decidedAt: Number.MAX_SAFE_INTEGER,
          act,
          token,
          by: 'somebody',
          note: null,
          force: false,
        });
    },
  },
  {
    name: 'read',
    async prepare(store, key) {
      await (await take(store, { namespace, key, crossing: true })).succeed(longText);
      return () => store.read(namespace, key);
    },
  },
  {
    name: 'list',
    async prepare(store, key) {
      for (const part of ['a', 'b', 'c']) await take(store, { namespace, key: `${key}${part}` });
      return () => store.list({ namespace, prefix: key, limit: 2 });
    },
  },
  {
    name: 'history',
    async prepare(store, key) {
      await lapsed(store, key);
      await take(store, { namespace, key, for: 'verify' });
      return () => store.history(namespace, key);
    },
  },
  {
    name: 'prune',
    async prepare(store, key) {
      const retention = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
      await (await take(store, { namespace, key, retention })).succeed(longText);
      // How many went in this call or in one whose answer was lost cannot be known: that none is left can.
      return async () => {
        await store.prune(100);
        return store.countExpired();
      };
    },
  },
  {
    name: 'append',
    once: true,
    async prepare(store, key) {
      const { generation, fence } = await take(store, { namespace, key });
      return () => store.append([{ namespace, key, generation, fence, type: 'noted', detail: {} }]);
    },
  },
];
