// @node-idempotency/core on Redis, through its own storage adapter. It guards requests, so args are the body of one, and
// what names the call is the header that a caller would send.

import { effect, load, type Peer } from './peer.ts';

interface Request {
  readonly headers: Readonly<Record<string, string>>;
  readonly path: string;
  readonly method: string;
  readonly body: object;
}

interface Core {
  readonly Idempotency: new (
    storage: Storage,
  ) => {
    onRequest(request: Request): Promise<{ body?: unknown } | undefined>;
    onResponse(request: Request, response: { body: unknown }): Promise<void>;
  };
}

interface Storage {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

interface Adapter {
  readonly RedisStorageAdapter: new (options: { url: string }) => Storage;
}

export async function nodeIdempotency(url: string): Promise<Peer> {
  const { Idempotency } = await load<Core>('@node-idempotency/core');
  const { RedisStorageAdapter } = await load<Adapter>('@node-idempotency/storage-adapter-redis');
  const storage = new RedisStorageAdapter({ url });
  await storage.connect();
  const idempotency = new Idempotency(storage);
  return {
    name: 'node-idempotency',
    async send(args) {
      const request: Request = {
        headers: { 'idempotency-key': (args as { lead: string }).lead },
        path: '/email/send',
        method: 'POST',
        body: args,
      };
      const known = await idempotency.onRequest(request);
      if (known !== undefined) return known.body;
      const body = await effect();
      await idempotency.onResponse(request, { body });
      return body;
    },
    [Symbol.asyncDispose]: () => storage.disconnect(),
  };
}
