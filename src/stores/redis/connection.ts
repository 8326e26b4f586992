// A client of our own, from a URL. The driver is an optional peer: whoever brings a client does not need it.

import type { Clock } from '../../core/clock.ts';
import { readAddress, redisExample } from '../../store/address.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { loadDriver, missingDriver } from '../../store/remote/driver.ts';
import { withTimeout } from '../../store/remote/in-time.ts';
import { type Connection, connectionOf, type IoRedisLike, type NodeRedisLike } from './client.ts';
import { replyCodeOf } from './failure.ts';

interface OwnNodeRedis extends NodeRedisLike {
  on(event: 'error', listener: () => void): unknown;
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  destroy(): void;
}

interface OwnIoRedis extends IoRedisLike {
  on(event: 'error', listener: () => void): unknown;
  disconnect(): void;
}

type NodeRedis = { createClient(options: object): OwnNodeRedis };
type IoRedis = { Redis: new (url: string, options: object) => OwnIoRedis };

export async function connect(url: string, clock: Clock, timeoutMs: number): Promise<Connection> {
  const nodeRedis = loadDriver('redis') as NodeRedis | undefined;
  if (nodeRedis !== undefined) return withNodeRedis(nodeRedis, url, clock, timeoutMs);
  const ioRedis = loadDriver('ioredis') as IoRedis | undefined;
  if (ioRedis !== undefined) return withIoRedis(ioRedis, url, timeoutMs);
  throw missingDriver(['redis', 'ioredis']);
}

async function withNodeRedis(
  driver: NodeRedis,
  url: string,
  clock: Clock,
  timeoutMs: number,
): Promise<Connection> {
  let isReached = false;
  const client = driver.createClient({
    url,
    // What waits for a server that is away would be asked too late: it is refused, and asked again by its token.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: timeoutMs,
      reconnectStrategy: (tries: number, cause: Error) => (isReached ? Math.min(50 * tries, 1_000) : cause),
    },
  });
  client.on('error', () => {});
  try {
    // The driver's own limit ends with the connection; a server that then says nothing is waited for without one.
    await withTimeout(client.connect(), clock, timeoutMs);
  } catch (error) {
    if (client.isOpen) client.destroy();
    throw error;
  }
  isReached = true;
  return {
    ...connectionOf(client),
    end: async () => {
      if (client.isOpen) client.destroy();
    },
  };
}

async function withIoRedis({ Redis }: IoRedis, url: string, timeoutMs: number): Promise<Connection> {
  const client = new Redis(url, {
    connectTimeout: timeoutMs,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (tries: number) => Math.min(50 * tries, 1_000),
  });
  client.on('error', () => {});
  return { ...connectionOf(client), end: async () => client.disconnect() };
}

/** For people: without user and password. */
export function placeOf(url: string | undefined, prefix: string): string {
  const named = prefix === 'semel' ? '' : `, prefix ${prefix}`;
  if (url === undefined) return `the client's address${named}`;
  const { host, pathname } = readAddress(url, redisExample);
  return `${host}${pathname === '/' ? '' : pathname}${named}`;
}

export interface WayOptions {
  readonly connect: () => Promise<Connection>;
  /** Else it is the user's to repair. */
  readonly isOurs: boolean;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

export interface Way {
  connection(): Promise<Connection>;
  ask<T>(question: (connection: Connection) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

export function wayTo({ connect, isOurs, clock, timeoutMs }: WayOptions): Way {
  let connecting: Promise<Connection> | undefined;
  let failingSince: number | undefined;

  function connection(): Promise<Connection> {
    if (connecting !== undefined) return connecting;
    const made = connect();
    connecting = made;
    made.catch(() => forget(made));
    return made;
  }

  function forget(made: Promise<Connection>): void {
    if (connecting === made) connecting = undefined;
  }

  return {
    connection,
    async ask(question) {
      const askedAt = clock.mono();
      const asked = connection();
      try {
        const answer = await withTimeout(asked.then(question), clock, timeoutMs);
        failingSince = undefined;
        return answer;
      } catch (error) {
        if (replyCodeOf(error) !== undefined || isRecordDamage(error)) failingSince = undefined;
        else if (isOurs) {
          failingSince ??= askedAt;
          if (clock.mono() - failingSince >= timeoutMs && connecting === asked) {
            failingSince = undefined;
            forget(asked);
            // What else waits on it is told that it failed, and asked again by its token.
            asked.then((lost) => lost.end()).catch(() => {});
          }
        }
        throw error;
      }
    },
    async end() {
      const reached = await connecting?.catch(() => undefined);
      await reached?.end();
    },
  };
}
