// semel on Redis at equal durability (AOF, fsync always), against two commands by hand through the drivers.

import type { Redis } from 'ioredis';
import { redisStore } from '../src/stores/redis/index.ts';
import { startRedis } from '../test/servers/redis.ts';
import { type Args, benchOn, callers, inParallel, next, result, settleAll, timesAsync } from './calls.ts';
import { type Figure, measure, rateOf } from './measure.ts';
import { rawKey, rawRedis } from './raw-redis.ts';
import type { Ratio, Section } from './report.ts';

export interface RedisSizes {
  readonly rounds: number;
}

export async function redis({ rounds }: RedisSizes): Promise<readonly Section[]> {
  await using server = await startRedis({ persistence: 'always' });
  if (server === undefined) return [];
  await using raws = await rawRedis(server.url);
  const { io } = raws;
  const bench = benchOn(redisStore({ url: server.url }), { cache: false });
  const text = JSON.stringify(result);
  const known = Array.from({ length: 1000 }, next);
  const rawKnown = known.map(rawKey);
  await inParallel(8, async (caller, n) => {
    const index = caller * 8 + n;
    if (index >= known.length) return;
    await bench.send(known[index] as Args);
    await raws.clients[0]?.execute(rawKnown[index] as string, text);
  });

  const first = await measure(rounds, [
    ...raws.clients.map((raw) => ({
      name: `${raw.name}: ${callers} callers`,
      run: () => inParallel(40, () => raw.execute(rawKey(), text)),
    })),
    { name: `semel: ${callers} callers`, run: () => inParallel(40, (caller) => bench.send(next(), caller)) },
    ...raws.clients.map((raw) => ({
      name: `${raw.name}: one caller`,
      run: () => timesAsync(300, () => raw.execute(rawKey(), text)),
    })),
    { name: 'semel: one caller', run: () => timesAsync(300, () => bench.send(next())) },
  ]);
  const replay = await measure(rounds, [
    ...raws.clients.map((raw) => ({
      name: `${raw.name}: ${callers} callers`,
      run: () =>
        inParallel(100, async (caller, n) =>
          JSON.parse((await raw.read(rawKnown[(caller * 100 + n) % 1000] as string)) ?? 'null'),
        ),
    })),
    {
      name: `semel: ${callers} callers`,
      run: () => inParallel(100, (caller, n) => bench.send(known[(caller * 100 + n) % 1000] as Args)),
    },
  ]);
  await bench.close();
  const counted = await counters(server.url, io);
  const bytes = await bytesPerRecord(server.url, io);

  const best = (figures: readonly Figure[], who: string) =>
    Math.max(...raws.clients.map(({ name }) => rateOf(figures, `${name}: ${who}`)));
  const many = `${callers} callers`;
  return [
    {
      title: 'Redis, appendfsync always: first executions',
      figures: first,
      ratios: [
        {
          what: `${many} / the best raw client`,
          value: rateOf(first, `semel: ${many}`) / best(first, many),
          goal: { direction: 'at least', value: 0.8 },
        },
        {
          what: 'one caller / the best raw client',
          value: rateOf(first, 'semel: one caller') / best(first, 'one caller'),
        },
      ],
    },
    {
      title: 'Redis: replays, no cache',
      figures: replay,
      ratios: [
        {
          what: `${many} / the best raw client`,
          value: rateOf(replay, `semel: ${many}`) / best(replay, many),
          goal: { direction: 'at least', value: 0.8 },
        },
      ],
    },
    { title: 'Redis: commands', figures: [], ratios: counted },
    {
      title: 'Redis: size',
      figures: [],
      ratios: [
        {
          what: 'bytes per record, with a 200-byte result',
          value: bytes,
          goal: { direction: 'at most', value: 520 },
        },
      ],
    },
  ];
}

/** Exact, whatever the machine: what the server says that it was asked, and what its scripts did then. */
async function counters(url: string, io: Redis): Promise<readonly Ratio[]> {
  const bench = benchOn(redisStore({ url, prefix: 'counted' }), { cache: false });
  const args = Array.from({ length: callers }, next);
  await settleAll(bench, args);
  const perCall = async (what: string, calls: () => Promise<number>): Promise<Ratio> => {
    await io.config('RESETSTAT');
    const made = await calls();
    const stats = await io.info('commandstats');
    const commands = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)]
      .map(([, name = '', times]) => ({ name, each: Number(times) / made }))
      .filter(({ name }) => !name.startsWith('config') && name !== 'info');
    const list = commands.map(({ name, each }) => `${name} ${each.toPrecision(2)}`).join(', ');
    return {
      what: `commands per ${what}, those of scripts too (${list})`,
      value: commands.reduce((sum, { each }) => sum + each, 0),
    };
  };
  const counted = [
    await perCall('first execution, one caller', () => timesAsync(100, () => bench.send(next()))),
    await perCall(`first execution, ${callers} callers`, () =>
      inParallel(40, (caller) => bench.send(next(), caller)),
    ),
    await perCall('replay, one caller', () => timesAsync(100, () => bench.send(args[0] as Args))),
    await perCall(`replay, ${callers} callers`, () =>
      inParallel(40, (caller) => bench.send(args[caller] as Args)),
    ),
  ];
  await bench.close();
  return counted;
}

/** By what the server says that it uses, before and after. */
async function bytesPerRecord(url: string, io: Redis): Promise<number> {
  await io.flushall();
  const used = async () => Number(/used_memory:(\d+)/.exec(await io.info('memory'))?.[1]);
  const bench = benchOn(redisStore({ url, prefix: 'size' }), { cache: false });
  await bench.send(next());
  const before = await used();
  const records = await inParallel(200, (caller) => bench.send(next(), caller));
  const after = await used();
  await bench.close();
  return (after - before) / records;
}
