// The limit: what `pg` alone does with the same durability, two statements by hand and nothing around them.

import pg from 'pg';

export interface RawPostgres {
  execute(key: string, result: string): Promise<void>;
  read(key: string): Promise<unknown>;
  close(): Promise<void>;
}

export const rawConnections = 16;

export async function rawPostgres(url: string): Promise<RawPostgres> {
  const pool = new pg.Pool({ connectionString: url, max: rawConnections });
  await pool.query(`CREATE TABLE IF NOT EXISTS raw_records (key text PRIMARY KEY, status smallint NOT NULL,
    token text NOT NULL, lease timestamptz, args text, result text)`);
  return {
    async execute(key, result) {
      await pool.query({
        name: 'claim',
        text: `INSERT INTO raw_records AS r (key, status, token, lease, args)
          VALUES ($1, 0, $2, clock_timestamp() + interval '60 s', $3)
          ON CONFLICT (key) DO UPDATE SET token = excluded.token, lease = excluded.lease
          WHERE r.status = 0 AND r.lease < clock_timestamp() RETURNING token`,
        values: [key, 'b7e1c0ffee5678ab', '{"lead":"l-000000001","n":1}'],
      });
      await pool.query({
        name: 'settle',
        text: 'UPDATE raw_records SET status = 1, lease = NULL, result = $3 WHERE key = $1 AND token = $2',
        values: [key, 'b7e1c0ffee5678ab', result],
      });
    },
    async read(key) {
      const { rows } = await pool.query({
        name: 'read',
        text: 'SELECT status, result FROM raw_records WHERE key = $1',
        values: [key],
      });
      return JSON.parse(rows[0].result);
    },
    close: () => pool.end(),
  };
}
