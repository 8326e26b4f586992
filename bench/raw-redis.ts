// The limit: what the drivers do with the same durability, two commands by hand and nothing around them.

import { Redis } from 'ioredis';
import { createClient } from 'redis';

export interface RawClient {
  readonly name: string;
  execute(key: string, text: string): Promise<unknown>;
  read(key: string): Promise<string | null>;
}

export interface RawRedis extends AsyncDisposable {
  readonly clients: readonly RawClient[];
  readonly io: Redis;
}

const claim = '{"status":"running","token":"b7e1c0ffee5678ab","args":{"lead":"l-000000001","n":1}}';
const keepMs = 86_400_000;

export async function rawRedis(url: string): Promise<RawRedis> {
  const io = new Redis(url, { enableAutoPipelining: true });
  const node = createClient({ url });
  await node.connect();
  return {
    io,
    clients: [
      {
        name: 'ioredis',
        async execute(key, text) {
          await io.set(key, claim, 'PX', keepMs, 'NX');
          await io.set(key, text, 'PX', keepMs);
        },
        read: (key) => io.get(key),
      },
      {
        name: 'redis',
        async execute(key, text) {
          const expiration = { type: 'PX', value: keepMs } as const;
          await node.set(key, claim, { expiration, condition: 'NX' });
          await node.set(key, text, { expiration });
        },
        read: (key) => node.get(key),
      },
    ],
    async [Symbol.asyncDispose]() {
      io.disconnect();
      await node.close();
    },
  };
}
