// semel on Redis at equal durability (AOF, fsync always), beside two commands by hand and what others use.

import type { Redis } from 'ioredis';
import { redisStore } from '../src/stores/redis/index.ts';
import { startRedis } from '../test/servers/redis.ts';
import { benchOn, fill, next, resultText } from './calls.ts';
import { type Candidate, compare, many, one } from './compare.ts';
import { countPerCall } from './counted.ts';
import { ratio } from './measure.ts';
import { installPeers } from './peers/install.ts';
import { nodeIdempotency } from './peers/node-idempotency.ts';
import { candidateOf } from './peers/peer.ts';
import { powertools } from './peers/powertools.ts';
import { rawRedis } from './raw-redis.ts';
import { atLeast, atMost, type Ratio, type Section } from './report.ts';

export async function redis(rounds: number): Promise<readonly Section[]> {
  await using server = await startRedis({ persistence: 'always' });
  if (server === undefined) return [];
  await using raws = await rawRedis(server.url);
  const hasPeers = installPeers();
  await using tools = hasPeers ? await powertools(server.url) : undefined;
  await using requests = hasPeers ? await nodeIdempotency(server.url) : undefined;
  const bench = benchOn(redisStore({ url: server.url }));
  const { first, replay } = await compare(rounds, [
    ...raws.clients.map(
      ({ name, execute, read }): Candidate => ({
        name,
        first: ({ lead }) => execute(`${name}:${lead}`, resultText),
        again: async ({ lead }) => JSON.parse((await read(`${name}:${lead}`)) ?? 'null'),
      }),
    ),
    ...[tools, requests].flatMap((peer) => (peer === undefined ? [] : [candidateOf(peer)])),
    { name: 'semel', first: bench.send, again: (args) => bench.send(args) },
  ]);
  await bench.close();
  const byHand = (figures: typeof first, by: string) =>
    ratio(figures, `semel: ${by}`, ...raws.clients.map(({ name }) => `${name}: ${by}`));
  const beside = (figures: typeof first, goals: readonly [number, number]): readonly Ratio[] =>
    [tools, requests].flatMap((peer, n) =>
      peer === undefined
        ? []
        : [
            {
              what: `${many} / ${peer.name}`,
              value: ratio(figures, `semel: ${many}`, `${peer.name}: ${many}`),
              goal: atLeast(goals[n] as number),
            },
          ],
    );
  return [
    {
      title: 'Redis, appendfsync always, first executions',
      figures: first,
      ratios: [
        { what: `${many} / the best raw client`, value: byHand(first, many), goal: atLeast(0.8) },
        { what: `${one} / the best raw client`, value: byHand(first, one) },
        ...beside(first, [1, 0.95]),
        ...(await commands(server.url, raws.io)),
        await bytes(server.url, raws.io),
      ],
    },
    {
      title: 'Redis, replays without a cache',
      figures: replay,
      ratios: [
        { what: `${many} / the best raw client`, value: byHand(replay, many), goal: atLeast(0.8) },
        ...beside(replay, [1.5, 1.5]),
      ],
    },
  ];
}

/** Those that scripts run are counted too. */
async function commands(url: string, io: Redis): Promise<readonly Ratio[]> {
  const bench = benchOn(redisStore({ url, prefix: 'counted' }));
  let asked = 0;
  const counted = await countPerCall(bench, 'commands, those of scripts too,', async () => {
    // Its own question is counted as well.
    asked += 1;
    const stats = await io.info('commandstats');
    return [...stats.matchAll(/:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 1 - asked);
  });
  await bench.close();
  return counted;
}

/** By what the server says that it uses, before and after. */
async function bytes(url: string, io: Redis): Promise<Ratio> {
  await io.flushall();
  const used = async () => Number(/used_memory:(\d+)/.exec(await io.info('memory'))?.[1]);
  const count = 20_000;
  const bench = benchOn(redisStore({ url, prefix: 'size' }));
  await bench.send(next());
  const before = await used();
  await fill(count, (n) => bench.send(next(), n % 128));
  const after = await used();
  await bench.close();
  return { what: 'bytes per record', value: (after - before) / count, goal: atMost(520) };
}
