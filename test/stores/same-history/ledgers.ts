// The stores that must answer the same history alike, and how each is made anew. To add one, add a line to `ledgers`.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemRandom } from '../../../src/core/clock.ts';
import { metaName } from '../../../src/store/cells/index.ts';
import { encodeMeta } from '../../../src/store/cells/meta.ts';
import { memoryStore, type Store } from '../../../src/store/index.ts';
import { remoteStore } from '../../../src/store/remote/remote-store.ts';
import { sqliteStore } from '../../../src/stores/sqlite/index.ts';
import { newScratch } from '../../processes/scratch.ts';
import { startDynamodb } from '../../servers/dynamodb.ts';
import { startPostgres } from '../../servers/postgres.ts';
import { startRedis } from '../../servers/redis.ts';
import { startS3 } from '../../servers/s3.ts';
import { type CellLedger, dynamodbLedger, s3Ledger } from '../cell-ledger.ts';
import { type MemoryCells, memoryCells, nameOf } from '../memory-cells.ts';
import { type MovableTime, movableTime } from '../movable-time.ts';
import { movableLedger as movablePostgres } from '../postgres-ledger.ts';
import { movableLedger as movableRedis } from '../redis-ledger.ts';
import { type RemoteMemoryBackend, remoteMemoryBackend } from '../remote-memory-backend.ts';

export interface Ledger {
  /** Empty, at the same moment as all others, with fences from one. */
  begin(): Promise<void>;
  /** A handle on it, with a memory of its own. */
  open(): Promise<Store>;
  advance(ms: number): Promise<void>;
  end(): Promise<void>;
}

/** Undefined: not to be had on this machine. */
export const ledgers: Record<string, () => Promise<Ledger | undefined>> = {
  sqlite: () => sqlite(true),
  // Every step reads its row and asks the rules.
  'sqlite without shortcuts': () => sqlite(false),

  async 'far memory'() {
    let time: MovableTime;
    let backend: RemoteMemoryBackend;
    return {
      async begin() {
        time = movableTime();
        backend = remoteMemoryBackend(time.clock.now);
      },
      open: async () => remoteStore(backend, { clock: time.clock, random: systemRandom }),
      advance: async (ms) => time.advance(ms),
      async end() {},
    };
  },

  async cells() {
    let time: MovableTime;
    let service: MemoryCells;
    return {
      async begin() {
        time = movableTime();
        service = memoryCells();
        service.cells.set(nameOf(metaName), {
          text: encodeMeta({ id: 'a ledger', floor: 0, prunedAt: 0 }),
          tag: '0',
        });
      },
      open: async () => service.open({ clock: time.clock }),
      advance: async (ms) => time.advance(ms),
      async end() {},
    };
  },

  async postgres() {
    // What is asked here is what it answers, not what it keeps when it is killed.
    const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };
    const server = await startPostgres({ settings });
    const ledger = await movablePostgres(server.url);
    let time: MovableTime;
    return {
      async begin() {
        time = movableTime();
        await ledger.empty();
        await ledger.setClock(time.time().wall);
      },
      open: () => ledger.open({ clock: time.clock, durability: 'accept-loss' }),
      async advance(ms) {
        time.advance(ms);
        await ledger.setClock(time.time().wall);
      },
      async end() {
        await ledger.end();
        await server.stop();
      },
    };
  },

  async redis() {
    const server = await startRedis();
    if (server === undefined) return undefined;
    const ledger = await movableRedis(server.url, 'ioredis');
    let time: MovableTime;
    return {
      async begin() {
        time = movableTime();
        ledger.setClock(time.time().wall);
        await ledger.empty();
      },
      open: () => ledger.open({ clock: time.clock }),
      async advance(ms) {
        time.advance(ms);
        ledger.setClock(time.time().wall);
      },
      async end() {
        await ledger.end();
        await server.stop();
      },
    };
  },

  async dynamodb() {
    const server = await startDynamodb();
    return cells(server.stop, dynamodbLedger(server.endpoint));
  },

  async s3() {
    const server = await startS3();
    return cells(server.stop, s3Ledger(server));
  },
};

function cells(end: () => Promise<void>, ledger: CellLedger): Ledger {
  let time: MovableTime;
  return {
    async begin() {
      time = movableTime();
      ledger.setClock(time.time().wall);
      await ledger.empty();
    },
    open: () => ledger.open({ clock: time.clock }),
    async advance(ms) {
      time.advance(ms);
      ledger.setClock(time.time().wall);
    },
    end,
  };
}

/** What they are compared with. */
export function reference(): Ledger {
  let time: MovableTime;
  let store: Store;
  return {
    async begin() {
      time = movableTime();
      store = memoryStore({ time: time.time });
    },
    open: async () => store,
    advance: async (ms) => time.advance(ms),
    async end() {},
  };
}

async function sqlite(shortcuts: boolean): Promise<Ledger> {
  // Nothing here is about disks.
  const scratch = newScratch('same-history', existsSync('/dev/shm') ? '/dev/shm' : undefined);
  let time: MovableTime;
  let path: string;
  let opened: Store[] = [];
  let nth = 0;
  return {
    async begin() {
      await Promise.all(opened.map((store) => store.close()));
      opened = [];
      time = movableTime();
      nth += 1;
      path = join(scratch.folder, `${nth}.db`);
    },
    async open() {
      const store = sqliteStore({
        path,
        clock: time.clock,
        machine: { bootId: () => time.time().boot, shortcuts },
      });
      opened.push(store);
      await store.open();
      return store;
    },
    advance: async (ms) => time.advance(ms),
    async end() {
      await Promise.all(opened.map((store) => store.close()));
      scratch[Symbol.dispose]();
    },
  };
}
