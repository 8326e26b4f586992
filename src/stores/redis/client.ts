// The Redis driver by its shape: `ioredis` or `redis` (node-redis), single or cluster. No driver is imported. Both drivers
// pipeline the commands of one event loop turn.

import { SemelError } from '../../core/errors.ts';

/** An `ioredis` client, or anything of its shape. */
export interface IoRedisLike {
  // biome-ignore lint/suspicious/noExplicitAny: the drivers overload it
  call(command: string, ...args: any[]): Promise<unknown>;
}

/** An `ioredis` cluster, or anything of its shape. */
export interface IoRedisClusterLike extends IoRedisLike {
  readonly isCluster: boolean;
  nodes(role: 'master'): IoRedisLike[];
}

/** A `redis` client or client pool, or anything of its shape. */
export interface NodeRedisLike {
  // biome-ignore lint/suspicious/noExplicitAny: the drivers have more arguments
  sendCommand(args: any): Promise<unknown>;
}

/** A `redis` cluster, or anything of its shape. */
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

/** Sends a command to one particular server. */
export type Node = (...command: readonly string[]) => Promise<Reply>;

export interface Connection {
  readonly isCluster: boolean;
  /** Commands run in the order they are sent. Not so if each may use another connection. */
  readonly isInOrder: boolean;
  /** In a cluster, sends to the server that holds this key. */
  send(key: string, command: readonly string[]): Promise<Reply>;
  /** Every primary. */
  nodes(): Promise<readonly Node[]>;
  /** Closes our own client; leaves the user's open. */
  end(): Promise<void>;
}

export function adaptClient(client: RedisClient): Connection {
  if (returnsNumbersAsText(client))
    throw new SemelError('STORE_UNSAFE', 'The Redis client returns numbers as strings (`stringNumbers`).', {
      next: 'Nothing was run. Pass a separate client without `stringNumbers`.',
    });
  return { ...adapt(client), async end() {} };
}

function adapt(client: RedisClient): Omit<Connection, 'end'> {
  if (isNodeRedisCluster(client)) {
    return {
      isCluster: true,
      isInOrder: false,
      send: async (key, command) => readReply(await client.sendCommand(key, false, command as string[])),
      nodes: () =>
        Promise.all(
          client.masters.map(async (node) => adaptNode((await client.nodeClient(node)) as RedisClient)),
        ),
    };
  }
  const ask = createSender(client);
  if (isIoRedisCluster(client)) {
    return {
      isCluster: true,
      isInOrder: false,
      send: (_key, command) => ask(command),
      async nodes() {
        // A cluster client knows its nodes only after the first command.
        if (client.nodes('master').length === 0) await client.call('ping');
        return client.nodes('master').map(adaptNode);
      },
    };
  }
  return {
    isCluster: false,
    isInOrder: !isNodeRedisPool(client),
    send: (_key, command) => ask(command),
    nodes: async () => [adaptNode(client)],
  };
}

function adaptNode(client: object): Node {
  const ask = createSender(client);
  return (...command) => ask(command);
}

/** Avoids copying the command where it can: a batch has many hundred parts. */
function createSender(client: object): (command: readonly string[]) => Promise<Reply> {
  if (isIoRedis(client))
    return async ([name, ...args]) => readReply(await client.call(name as string, ...args));
  return async (command) => readReply(await (client as NodeRedisLike).sendCommand(command));
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

/** An option of `ioredis` clients and clusters. The script's `0` would look like a record. */
function returnsNumbersAsText(client: object): boolean {
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

/** Inside MULTI, commands are only queued: an effect would run before its claim. */
function readReply(reply: unknown): Reply {
  const answer = normalizeReply(reply);
  if (answer === 'QUEUED') throw new Error('SEMELQUEUED');
  return answer;
}

/** Drivers can be configured to return buffers, big integers or maps. */
function normalizeReply(reply: unknown): Reply {
  if (typeof reply === 'string' || typeof reply === 'number') return reply;
  if (reply === null || reply === undefined) return null;
  if (typeof reply === 'bigint') return Number(reply);
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (reply instanceof Error) throw reply;
  if (Array.isArray(reply)) return reply.map(normalizeReply);
  if (reply instanceof Map) return [...reply].flat().map(normalizeReply);
  if (reply instanceof Set) return [...reply].map(normalizeReply);
  if (typeof reply === 'object') return Object.entries(reply).flat().map(normalizeReply);
  return String(reply);
}
