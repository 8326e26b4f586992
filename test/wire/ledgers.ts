// A ledger behind a proxy that can hurt each message: one per operation, so that none disturbs another.

import type { Store } from '../../src/store/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { redisStore } from '../../src/stores/redis/index.ts';
import { type FaultProxy, startFaultProxy } from '../servers/fault-proxy.ts';

export type WireStore = 'postgres' | 'redis';

export interface HurtLedger extends AsyncDisposable {
  readonly store: Store;
  readonly direct: Store;
  readonly proxy: FaultProxy;
}

export async function hurtLedger(
  kind: WireStore,
  url: string,
  name: string,
  timeoutMs: number,
): Promise<HurtLedger> {
  const proxy = await startFaultProxy({ url, protocol: kind });
  const open = (address: string, ms: number): Store =>
    kind === 'postgres'
      ? postgresStore({ url: address, schema: name, timeoutMs: ms })
      : redisStore({ url: address, prefix: name, timeoutMs: ms, durability: 'accept-loss' });
  const direct = open(url, 60_000);
  await direct.open();
  const store = open(proxy.url, timeoutMs);
  return {
    store,
    direct,
    proxy,
    async [Symbol.asyncDispose]() {
      proxy.calm();
      await proxy.close();
      await store.close();
      await direct.close();
    },
  };
}
