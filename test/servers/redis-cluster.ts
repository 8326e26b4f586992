// Three Redis servers that share the slots among them, without replicas: enough to be told MOVED and CROSSSLOT.

import { setTimeout as sleep } from 'node:timers/promises';
import { askRedis } from './ask-redis.ts';
import { freePort } from './free-port.ts';
import { type RedisOptions, type RedisServer, startRedis } from './redis.ts';

export interface RedisCluster extends AsyncDisposable {
  readonly nodes: readonly RedisServer[];
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

const slots = 16_384;

/** Undefined, after a line on the console, if no Redis can be had. */
export async function startRedisCluster(options: RedisOptions = {}): Promise<RedisCluster | undefined> {
  const started = await Promise.all([1, 2, 3].map(() => startNode(options)));
  const nodes = started.filter((node) => node !== undefined);
  if (nodes.length < started.length) return undefined;

  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    await join(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, urls: nodes.map(({ url }) => url), stop, [Symbol.asyncDispose]: stop };
}

async function startNode(options: RedisOptions): Promise<RedisServer | undefined> {
  const settings = {
    'cluster-enabled': 'yes',
    // Otherwise ten thousand above the other port, where the kernel's own range is.
    'cluster-port': String(await freePort()),
    ...options.settings,
  };
  return startRedis({ ...options, settings });
}

async function join(nodes: readonly RedisServer[]): Promise<void> {
  for (const [index, { port }] of nodes.entries()) {
    const first = Math.floor((slots * index) / nodes.length);
    const last = Math.floor((slots * (index + 1)) / nodes.length) - 1;
    await done(port, `CLUSTER ADDSLOTSRANGE ${first} ${last}`);
    // All start at zero; two that agree on it would have to be told apart first.
    await done(port, `CLUSTER SET-CONFIG-EPOCH ${index + 1}`);
  }
  const [head, ...others] = nodes as [RedisServer, ...RedisServer[]];
  for (const { port } of others) {
    const bus = /cluster-port\r\n\$\d+\r\n(\d+)/.exec(
      (await askRedis(port, 'CONFIG GET cluster-port')) ?? '',
    );
    await done(head.port, `CLUSTER MEET 127.0.0.1 ${port} ${bus?.[1]}`);
  }
  for (const { port } of nodes) {
    while (!(await knowsAll(port, nodes.length))) await sleep(20);
  }
}

async function knowsAll(port: number, size: number): Promise<boolean> {
  const info = (await askRedis(port, 'CLUSTER INFO')) ?? '';
  return info.includes('cluster_state:ok') && info.includes(`cluster_size:${size}\r`);
}

async function done(port: number, command: string): Promise<void> {
  const answer = await askRedis(port, command);
  if (answer !== '+OK\r\n') throw new Error(`${command}: ${answer}`);
}
