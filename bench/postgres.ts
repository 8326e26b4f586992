// semel on Postgres with full durability, beside two statements by hand through `pg`, and beside DBOS.

import pg from 'pg';
import { postgresStore } from '../src/stores/postgres/index.ts';
import { startPostgres } from '../test/servers/postgres.ts';
import { benchOn, fill, next, resultText, staggered } from './calls.ts';
import { type Candidate, compare, many, one } from './compare.ts';
import { countPerCall } from './counted.ts';
import { effects } from './effects.ts';
import { ratio } from './measure.ts';
import { dbos } from './peers/dbos.ts';
import { installPeers } from './peers/install.ts';
import { candidateOf } from './peers/peer.ts';
import { rawConnections, rawPostgres } from './raw-postgres.ts';
import { atLeast, atMost, type Ratio, type Section } from './report.ts';

export async function postgres(rounds: number): Promise<readonly Section[]> {
  await using server = await startPostgres({
    settings: { shared_buffers: '512MB', max_wal_size: '4GB', max_connections: '200' },
  });
  const raw = await rawPostgres(server.url);
  await using peer = installPeers() ? await dbos(server.url, rawConnections) : undefined;
  const peers: readonly Candidate[] = peer === undefined ? [] : [candidateOf(peer)];
  const bench = benchOn(postgresStore({ url: server.url }));
  const { first, replay } = await compare(rounds, [
    {
      name: 'pg by hand',
      first: (args) => raw.execute(args.lead, resultText),
      again: (args) => raw.read(args.lead),
    },
    ...peers,
    { name: 'semel', first: bench.send, again: (args) => bench.send(args) },
  ]);
  await bench.close();
  const against = (figures: typeof first, by: string) => ratio(figures, `semel: ${by}`, `pg by hand: ${by}`);
  const beside = (figures: typeof first): readonly Ratio[] =>
    peers.map(({ name }) => ({
      what: `${many} / ${name}`,
      value: ratio(figures, `semel: ${many}`, `${name}: ${many}`),
    }));
  const staggering = benchOn(postgresStore({ url: server.url }), { effectMs: staggered });
  const sections: readonly Section[] = [
    {
      title: 'Postgres, first executions',
      figures: first,
      ratios: [
        { what: `${many} / two statements by hand`, value: against(first, many), goal: atLeast(6) },
        { what: `${one} / two statements by hand`, value: against(first, one), goal: atLeast(0.8) },
        ...beside(first),
        ...(await statements(server.url)),
        await bytes(server.url),
      ],
    },
    {
      title: 'Postgres, replays without a cache',
      figures: replay,
      ratios: [
        { what: `${many} / a select by hand`, value: against(replay, many), goal: atLeast(8) },
        { what: `${one} / a select by hand`, value: against(replay, one) },
        ...beside(replay),
      ],
    },
    await effects('Postgres', rounds, staggering, () => raw.execute(next().lead, resultText)),
  ];
  await raw.close();
  return sections;
}

async function statements(url: string): Promise<readonly Ratio[]> {
  const { query } = pg.Client.prototype;
  let asked = 0;
  pg.Client.prototype.query = function (this: pg.Client, ...question: unknown[]) {
    asked += 1;
    return (query as (...question: unknown[]) => unknown).apply(this, question);
  } as typeof query;
  try {
    const bench = benchOn(postgresStore({ url, schema: 'counted' }));
    const counted = await countPerCall(bench, 'statements, each a transaction,', () => asked);
    await bench.close();
    return counted;
  } finally {
    pg.Client.prototype.query = query;
  }
}

/**
 * All that the schema takes, indexes too. A settlement leaves the version that its claim wrote behind it, and autovacuum
 * frees that: once a minute by default, and this takes seconds.
 */
async function bytes(url: string): Promise<Ratio> {
  const count = 60_000;
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query("ALTER SYSTEM SET autovacuum_naptime = '1s'");
  await admin.query('SELECT pg_reload_conf()');
  const bench = benchOn(postgresStore({ url, schema: 'sized' }));
  await fill(count, (n) => bench.send(next(), n % 128));
  await bench.close();
  await admin.query('VACUUM ANALYZE');
  const { rows } = await admin.query(`SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'sized'::regnamespace`);
  await admin.query('ALTER SYSTEM RESET autovacuum_naptime');
  await admin.query('SELECT pg_reload_conf()');
  await admin.end();
  return { what: 'bytes per record', value: rows[0].bytes / count, goal: atMost(620) };
}
