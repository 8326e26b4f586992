// The few things that a Redis driver must be able to do, whatever its name: `ioredis` and `redis` (node-redis), each
// with its cluster. Commands of one turn of the event loop go out together: both drivers see to that.

import { SemelError } from '../../core/errors.ts';

/** A client of `ioredis`, or anything of its shape. */
export interface IoRedisLike {
  // biome-ignore lint/suspicious/noExplicitAny: the drivers overload it
  call(command: string, ...args: any[]): Promise<unknown>;
}

/** A cluster of `ioredis`, or anything of its shape. */
export interface IoRedisClusterLike extends IoRedisLike {
  readonly isCluster: boolean;
  nodes(role: 'master'): IoRedisLike[];
}

/** A client or a pool of clients of `redis`, or anything of its shape. */
export interface NodeRedisLike {
  // biome-ignore lint/suspicious/noExplicitAny: the drivers have more arguments
  sendCommand(args: any): Promise<unknown>;
}

/** A cluster of `redis`, or anything of its shape. */
export interface NodeRedisClusterLike {
  readonly masters: readonly unknown[];
  // biome-ignore lint/suspicious/noExplicitAny: the type of a node is the driver's
  nodeClient(node: any): unknown;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    args: string[],
  ): Promise<unknown>;
}

export type RedisClient = IoRedisLike | IoRedisClusterLike | NodeRedisLike | NodeRedisClusterLike;

export type Reply = string | number | null | readonly Reply[];

/** One server, asked for itself. */
export type Node = (...command: readonly string[]) => Promise<Reply>;

export interface Connection {
  readonly isCluster: boolean;
  /** What is sent first is done first: not where each command may take another connection. */
  readonly isInOrder: boolean;
  /** In a cluster, to the server that has this key. */
  send(key: string, command: readonly string[]): Promise<Reply>;
  /** Every server that takes writes. */
  nodes(): Promise<readonly Node[]>;
  /** Of a client that is ours. */
  end(): Promise<void>;
}

/** The user's own client is the user's to close. */
export function connectionOf(client: RedisClient): Connection {
  if (givesTexts(client))
    throw new SemelError('STORE_UNSAFE', 'The Redis client gives numbers as texts (`stringNumbers`).', {
      next: 'Nothing was run. Pass a client of its own without `stringNumbers`.',
    });
  return { ...waysOf(client), async end() {} };
}

function waysOf(client: RedisClient): Omit<Connection, 'end'> {
  if (isNodeRedisCluster(client)) {
    return {
      isCluster: true,
      isInOrder: false,
      send: async (key, command) => answerIn(await client.sendCommand(key, false, command as string[])),
      nodes: () =>
        Promise.all(
          client.masters.map(async (node) => nodeOf((await client.nodeClient(node)) as RedisClient)),
        ),
    };
  }
  const ask = askerOf(client);
  if (isIoRedisCluster(client)) {
    return {
      isCluster: true,
      isInOrder: false,
      send: (_key, command) => ask(command),
      async nodes() {
        // Before its first command it knows of none.
        if (client.nodes('master').length === 0) await client.call('ping');
        return client.nodes('master').map(nodeOf);
      },
    };
  }
  return {
    isCluster: false,
    isInOrder: !isNodeRedisPool(client),
    send: (_key, command) => ask(command),
    nodes: async () => [nodeOf(client)],
  };
}

function nodeOf(client: object): Node {
  const ask = askerOf(client);
  return (...command) => ask(command);
}

/** A batch is one command of many hundred parts: it is not copied. */
function askerOf(client: object): (command: readonly string[]) => Promise<Reply> {
  if (isIoRedis(client))
    return async ([name, ...args]) => answerIn(await client.call(name as string, ...args));
  return async (command) => answerIn(await (client as NodeRedisLike).sendCommand(command));
}

function isIoRedis(client: object): client is IoRedisLike {
  return has(client, 'call');
}

function isIoRedisCluster(client: object): client is IoRedisClusterLike {
  return isIoRedis(client) && 'isCluster' in client && client.isCluster === true;
}

function isNodeRedisCluster(client: object): client is NodeRedisClusterLike {
  return has(client, 'sendCommand') && has(client, 'nodeClient');
}

/** Of a client of `ioredis`, or of the clients of its cluster: an answer could not be told from a record. */
function givesTexts(client: object): boolean {
  type Options = { readonly stringNumbers?: unknown; readonly redisOptions?: Options };
  const { options } = client as { readonly options?: Options };
  return options?.stringNumbers === true || options?.redisOptions?.stringNumbers === true;
}

function isNodeRedisPool(client: object): boolean {
  return has(client, 'sendCommand') && has(client, 'execute') && 'totalClients' in client;
}

function has(value: object, method: string): boolean {
  return method in value && typeof (value as Record<string, unknown>)[method] === 'function';
}

/** Inside MULTI nothing is done when it is asked: an effect would run before its claim. */
function answerIn(reply: unknown): Reply {
  const answer = plain(reply);
  if (answer === 'QUEUED') throw new Error('SEMELQUEUED');
  return answer;
}

/** Drivers may be set to answer with buffers, big integers, maps. */
function plain(reply: unknown): Reply {
  if (typeof reply === 'string' || typeof reply === 'number') return reply;
  if (reply === null || reply === undefined) return null;
  if (typeof reply === 'bigint') return Number(reply);
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (reply instanceof Error) throw reply;
  if (Array.isArray(reply)) return reply.map(plain);
  if (reply instanceof Map) return [...reply].flat().map(plain);
  if (reply instanceof Set) return [...reply].map(plain);
  if (typeof reply === 'object') return Object.entries(reply).flat().map(plain);
  return String(reply);
}
