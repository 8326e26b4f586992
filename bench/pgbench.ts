// The limit that others know: Postgres' own pgbench, with one statement for the claim and one for the ending, each
// its own transaction. It measures itself, since its connections take longer to open than its work.

import { execFile } from 'node:child_process';
import { accessSync, constants, globSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { Contestant } from './measure.ts';

const run = promisify(execFile);
const seconds = 2;
const clients = [1, 16, 128];

const script = `\\set n random(1000000000000000, 9000000000000000)
INSERT INTO pgbench_records AS r (key, status, token, lease, args)
  VALUES ('email.send/2026-06-19/0000000000000000' || :n, 0, 'b7e1c0ffee5678ab', clock_timestamp() + interval '60 s',
    '{"lead":"l-000000001","n":1}')
  ON CONFLICT (key) DO UPDATE SET token = excluded.token, lease = excluded.lease
  WHERE r.status = 0 AND r.lease < clock_timestamp() RETURNING token;
UPDATE pgbench_records SET status = 1, lease = NULL, result = '{"id":"m-1","text":"${'x'.repeat(175)}"}'
  WHERE key = 'email.send/2026-06-19/0000000000000000' || :n AND token = 'b7e1c0ffee5678ab';
`;

/** None, after a line on the console, where the machine has no pgbench. */
export async function pgbench(url: string, path: (name: string) => string): Promise<readonly Contestant[]> {
  const program = find();
  if (program === undefined) {
    process.stderr.write('skipped: pgbench is neither on the PATH nor in /usr/lib/postgresql/*/bin\n');
    return [];
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE TABLE IF NOT EXISTS pgbench_records (key text PRIMARY KEY, status smallint NOT NULL,
    token text NOT NULL, lease timestamptz, args text, result text)`);
  await client.end();
  const file = path('two-statements.sql');
  writeFileSync(file, script);
  return clients.map((count) => ({
    name: pgbenchName(count),
    async run() {
      const options = ['-n', '-M', 'prepared', '-f', file, '-c', `${count}`, '-j', `${Math.min(count, 2)}`];
      const { stdout } = await run(program, [...options, '-T', `${seconds}`, url]);
      const rate = /^tps = ([\d.]+)/m.exec(stdout)?.[1];
      if (rate === undefined) throw new Error(`pgbench told no rate: ${stdout}`);
      return { perSecond: Number(rate) };
    },
  }));
}

export const isPgbench = (name: string): boolean => name.startsWith('pgbench: ');

const pgbenchName = (count: number) => `pgbench: ${count === 1 ? 'one client' : `${count} clients`}`;

function find(): string | undefined {
  return [
    ...(process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'pgbench')),
    ...globSync('/usr/lib/postgresql/*/bin/pgbench').toReversed(),
  ].find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
