// semel beside what others use, on the same server in the same run: the limit by hand, the peers, semel.

import { deepStrictEqual } from 'node:assert';
import { hash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { postgresStore } from '../src/stores/postgres/index.ts';
import { redisStore } from '../src/stores/redis/index.ts';
import { startPostgres } from '../test/servers/postgres.ts';
import { startRedis } from '../test/servers/redis.ts';
import { type Args, type Bench, benchOn, callers, inParallel, next, result, timesAsync } from './calls.ts';
import { type Contestant, measure, rateOf } from './measure.ts';
import { dbos } from './peers/dbos.ts';
import { installPeers } from './peers/install.ts';
import { nodeIdempotency } from './peers/node-idempotency.ts';
import type { Peer } from './peers/peer.ts';
import { powertools } from './peers/powertools.ts';
import { rawConnections, rawPostgres } from './raw-postgres.ts';
import { rawRedis } from './raw-redis.ts';
import type { Ratio, Section } from './report.ts';

/** Whoever is measured. */
interface Candidate {
  readonly name: string;
  readonly kind: 'limit' | 'peer' | 'semel';
  /** A call that is new, and one that was made before. */
  readonly first: (args: Args, caller: number) => Promise<unknown>;
  readonly again: (args: Args) => Promise<unknown>;
  readonly calls: Calls;
}

/** New ones per round, of one caller and of each of many; three times as many replays. The slow make fewer. */
interface Calls {
  readonly one: number;
  readonly each: number;
}

const text = JSON.stringify(result);
const crowd = `${callers} callers`;
const rawKeyOf = ({ lead }: Args) => `raw:email.send/2026-06-19/${lead}`;
/**
 * How many calls are replayed from the cache in turn. Of the few, semel remembers the keys and counts the replays for its
 * history; of the many, it must hash args every time, and write down who asked.
 */
const few = 1_000;
const many = 6_000;

let executions = 0;
const effect = async (): Promise<typeof result> => {
  executions += 1;
  return result;
};

export async function peers(rounds: number): Promise<readonly Section[]> {
  if (!installPeers()) return [];
  return [...(await onRedis(rounds)), ...(await onPostgres(rounds))];
}

async function onRedis(rounds: number): Promise<readonly Section[]> {
  await using server = await startRedis({ persistence: 'always' });
  if (server === undefined) return [];
  await using raws = await rawRedis(server.url);
  await using plain = await powertools(server.url, effect, 0);
  await using caching = await powertools(server.url, effect, 2 * many);
  await using requests = await nodeIdempotency(server.url, effect);
  const bench = benchOn(redisStore({ url: server.url }), { cache: false });
  const calls = { one: 300, each: 40 };
  const sections = await compared(
    'Redis, appendfsync always',
    [
      ...raws.clients.map(
        ({ name, execute, read }): Candidate => ({
          name: `${name} by hand`,
          kind: 'limit',
          first: (args) => execute(`${name}:${rawKeyOf(args)}`, text),
          again: async (args) => JSON.parse((await read(`${name}:${rawKeyOf(args)}`)) ?? 'null'),
          calls,
        }),
      ),
      ...[plain, caching, requests].map((peer) => peerOf(peer, calls)),
      semelOf(bench, calls),
    ],
    rounds,
  );
  await bench.close();
  return [
    ...sections,
    await cached(server.url, raws.io, caching, few, rounds),
    await cached(server.url, raws.io, caching, many, rounds),
  ];
}

async function onPostgres(rounds: number): Promise<readonly Section[]> {
  await using server = await startPostgres({ settings: { shared_buffers: '512MB', max_wal_size: '4GB' } });
  const raw = await rawPostgres(server.url);
  await using workflows = await dbos(server.url, effect, rawConnections);
  const bench = benchOn(postgresStore({ url: server.url }), { cache: false });
  const sections = await compared(
    'Postgres',
    [
      {
        name: 'pg by hand',
        kind: 'limit',
        first: (args) => raw.execute(rawKeyOf(args), text),
        again: (args) => raw.read(rawKeyOf(args)),
        calls: { one: 300, each: 16 },
      },
      peerOf(workflows, { one: 60, each: 4 }),
      semelOf(bench, { one: 300, each: 40 }),
    ],
    rounds,
  );
  await bench.close();
  await raw.close();
  return sections;
}

function peerOf({ name, send }: Peer, calls: Calls): Candidate {
  return { name, kind: 'peer', first: (args) => send(args), again: send, calls };
}

function semelOf({ send }: Bench, calls: Calls): Candidate {
  return { name: 'semel', kind: 'semel', first: send, again: (args) => send(args), calls };
}

/** First executions and replays of all of them, in turn. */
async function compared(
  title: string,
  candidates: readonly Candidate[],
  rounds: number,
): Promise<readonly Section[]> {
  const known = Array.from({ length: 512 }, next);
  for (const { name, first, again } of candidates) {
    await inParallel(known.length / callers, (caller, n) => first(known[caller + n * callers] as Args, 0));
    deepStrictEqual(await again(known[0] as Args), result, `${name} replays something else`);
  }
  const nth = (n: number) => known[n % known.length] as Args;
  const first = await measure(rounds, [
    ...candidates.map(
      (candidate): Contestant => ({
        name: `${candidate.name}: one caller`,
        run: () => timesAsync(candidate.calls.one, () => candidate.first(next(), 0)),
      }),
    ),
    ...candidates.map(
      (candidate): Contestant => ({
        name: `${candidate.name}: ${crowd}`,
        run: () => inParallel(candidate.calls.each, (caller) => candidate.first(next(), caller)),
      }),
    ),
  ]);
  const before = executions;
  const replay = await measure(rounds, [
    ...candidates.map(
      ({ name, again, calls }): Contestant => ({
        name: `${name}: one caller`,
        run: () => timesAsync(3 * calls.one, (n) => again(nth(n))),
      }),
    ),
    ...candidates.map(
      ({ name, again, calls }): Contestant => ({
        name: `${name}: ${crowd}`,
        run: () => inParallel(3 * calls.each, (caller, n) => again(nth(caller + n * callers))),
      }),
    ),
  ]);
  if (executions !== before) throw new Error(`${title}: a replay was executed.`);
  const others = candidates.filter(({ kind }) => kind !== 'semel').map(({ name }) => name);
  const against = (figures: typeof first): readonly Ratio[] =>
    ['one caller', crowd].flatMap((who) =>
      others.map((name) => ({
        what: `semel / ${name}, ${who}`,
        value: rateOf(figures, `semel: ${who}`) / rateOf(figures, `${name}: ${who}`),
      })),
    );
  return [
    { title: `Peers on ${title}: first executions`, figures: first, ratios: against(first) },
    {
      title: `Peers on ${title}: replays, semel without its cache`,
      figures: replay,
      ratios: against(replay),
    },
  ];
}

/** Replays that reach no server: who finds 200 bytes of args in its memory sooner. */
async function cached(url: string, io: Redis, peer: Peer, count: number, rounds: number): Promise<Section> {
  const known = Array.from({ length: count }, () => ({ ...next(), note: 'x'.repeat(160) }));
  const bench = benchOn(redisStore({ url, prefix: `cached-${count}` }), { cache: true });
  const [alone, each] = [30_000, 240];
  const memory = new Map<string, string>();
  const nameOf = (args: Args) => hash('sha256', JSON.stringify(args), 'hex');
  for (const args of known) memory.set(nameOf(args), text);
  const candidates = [
    {
      name: 'sha256 and a Map by hand',
      send: async (args: Args) => JSON.parse(memory.get(nameOf(args)) ?? ''),
    },
    { name: peer.name, send: peer.send },
    { name: 'semel, cache', send: (args: Args) => bench.send(args) },
  ];
  for (const { send } of candidates) {
    await inParallel(Math.ceil(count / callers), async (caller, n) => {
      const args = known[caller + n * callers];
      if (args !== undefined) await send(args);
    });
    // Once more: what a memory keeps of its own call may differ from what it keeps of a replay.
    for (const args of known) await send(args);
  }
  // Notes about replays are written off the path, the first of a key within a second.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await io.info('stats'))?.[1]);
  const [before, executedBefore] = [await commands(), executions];
  const figures = await measure(rounds, [
    ...candidates.map(({ name, send }) => ({
      name: `${name}: one caller`,
      run: () => timesAsync(alone, (n) => send(known[n % count] as Args)),
    })),
    ...candidates.map(({ name, send }) => ({
      name: `${name}: ${crowd}`,
      run: () => inParallel(each, (caller, n) => send(known[(caller + n * callers) % count] as Args)),
    })),
  ]);
  const asked = (await commands()) - before - 1;
  if (executions !== executedBefore) throw new Error('A cached replay was executed.');
  await bench.close();
  const semel = rateOf(figures, 'semel, cache: one caller');
  const isUsual = count === few;
  return {
    title: `Peers: replays from the cache, ${JSON.stringify(known[0]).length} bytes of args, ${count} calls in turn`,
    figures,
    ratios: [
      {
        what: `semel / ${peer.name}, one caller`,
        value: semel / rateOf(figures, `${peer.name}: one caller`),
        ...(isUsual ? { goal: { direction: 'at least', value: 4 } } : {}),
      },
      {
        what: `semel / ${peer.name}, ${crowd}`,
        value: rateOf(figures, `semel, cache: ${crowd}`) / rateOf(figures, `${peer.name}: ${crowd}`),
      },
      {
        what: 'semel, one caller, per second',
        value: semel,
        ...(isUsual ? { goal: { direction: 'at least', value: 150_000 } } : {}),
      },
      {
        what: 'commands per replay of semel, those of scripts too (exact)',
        value: asked / (rounds * (alone + callers * each)),
      },
    ],
  };
}
