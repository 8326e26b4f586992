// Our own client from a URL, connected on first use and again after it stops answering. The driver is an optional peer: a
// user who passes a client does not need it.

import { type Clock, withTimeout } from '../../core/clock.ts';
import { readAddress, redisExample } from '../../store/address.ts';
import { isRecordDamage } from '../../store/damage.ts';
import { loadDriver, missingDriver } from '../../store/remote/driver.ts';
import { adaptClient, type Connection, type IoRedisLike, type NodeRedisLike } from './client.ts';
import { readReplyCode } from './failure.ts';

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
  if (nodeRedis !== undefined) return connectNodeRedis(nodeRedis, url, clock, timeoutMs);
  const ioRedis = loadDriver('ioredis') as IoRedis | undefined;
  if (ioRedis !== undefined) return connectIoRedis(ioRedis, url, timeoutMs);
  throw missingDriver(['redis', 'ioredis']);
}

async function connectNodeRedis(
  driver: NodeRedis,
  url: string,
  clock: Clock,
  timeoutMs: number,
): Promise<Connection> {
  let isReached = false;
  const client = driver.createClient({
    url,
    // A request queued while the server is away would arrive too late. Fail it; the caller retries with its token.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: timeoutMs,
      reconnectStrategy: (tries: number, cause: Error) => (isReached ? Math.min(50 * tries, 1_000) : cause),
    },
  });
  client.on('error', () => {});
  try {
    // The driver's timeout covers only the TCP connection, not a server that then stays silent.
    await withTimeout(client.connect(), clock, timeoutMs);
  } catch (error) {
    if (client.isOpen) client.destroy();
    throw error;
  }
  isReached = true;
  return {
    ...adaptClient(client),
    end: async () => {
      if (client.isOpen) client.destroy();
    },
  };
}

async function connectIoRedis({ Redis }: IoRedis, url: string, timeoutMs: number): Promise<Connection> {
  const client = new Redis(url, {
    connectTimeout: timeoutMs,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: (tries: number) => Math.min(50 * tries, 1_000),
  });
  client.on('error', () => {});
  return { ...adaptClient(client), end: async () => client.disconnect() };
}

/** For messages: without user and password. */
export function describePlace(url: string | undefined, prefix: string): string {
  const named = prefix === 'semel' ? '' : `, prefix ${prefix}`;
  if (url === undefined) return `the client's address${named}`;
  const { host, pathname } = readAddress(url, redisExample);
  return `${host}${pathname === '/' ? '' : pathname}${named}`;
}

interface ConnectorOptions {
  readonly connect: () => Promise<Connection>;
  /** If false, only the user can reconnect. */
  readonly isOurs: boolean;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

interface Connector {
  connection(): Promise<Connection>;
  ask<T>(question: (connection: Connection) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

export function createConnector({ connect, isOurs, clock, timeoutMs }: ConnectorOptions): Connector {
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
      const attempt = connection();
      try {
        const answer = await withTimeout(attempt.then(question), clock, timeoutMs);
        failingSince = undefined;
        return answer;
      } catch (error) {
        if (readReplyCode(error) !== undefined || isRecordDamage(error)) failingSince = undefined;
        else if (isOurs) {
          failingSince ??= askedAt;
          if (clock.mono() - failingSince >= timeoutMs && connecting === attempt) {
            failingSince = undefined;
            forget(attempt);
            // Other requests on this connection fail, and their callers retry with their tokens.
            attempt.then((lost) => lost.end()).catch(() => {});
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
