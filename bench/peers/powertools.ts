// @aws-lambda-powertools/idempotency on Redis, through its cache persistence layer.

import { type Effect, effect, load, type Peer } from './peer.ts';

interface Powertools {
  makeIdempotent(
    work: Effect,
    options: { persistenceStore: object; config: object; keyPrefix: string },
  ): (args: object) => Promise<unknown>;
  readonly IdempotencyConfig: new (options: {
    useLocalCache: boolean;
    lambdaContext: { getRemainingTimeInMillis(): number };
  }) => object;
}

interface Persistence {
  readonly CachePersistenceLayer: new (options: { client: object }) => object;
}

interface RedisDriver {
  createClient(options: { url: string }): { connect(): Promise<object>; close(): Promise<void> };
}

export async function powertools(url: string): Promise<Peer> {
  const { makeIdempotent, IdempotencyConfig } = await load<Powertools>('@aws-lambda-powertools/idempotency');
  const { CachePersistenceLayer } = await load<Persistence>('@aws-lambda-powertools/idempotency/cache');
  const { createClient } = await load<RedisDriver>('@redis/client');
  const client = createClient({ url });
  await client.connect();
  const send = makeIdempotent(effect, {
    persistenceStore: new CachePersistenceLayer({ client }),
    config: new IdempotencyConfig({
      useLocalCache: false,
      // Without it, it warns at every call that it cannot tell when a claim is stale.
      lambdaContext: { getRemainingTimeInMillis: () => 60_000 },
    }),
    keyPrefix: 'powertools',
  });
  return { name: 'powertools', send, [Symbol.asyncDispose]: () => client.close() };
}
