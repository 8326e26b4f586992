// Lists reach Postgres as they are, whatever is in them.
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { arrayOf } from '../../src/stores/postgres/array.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';

let server: PostgresServer;
let client: pg.Client;
beforeAll(async () => {
  server = await startPostgres();
  client = new pg.Client({ connectionString: server.url });
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await server?.stop();
});

const readAs = async (type: 'text' | 'bigint', list: string) =>
  (await client.query(`SELECT to_json($1::text::${type}[])::text AS list`, [list])).rows[0].list;

const odd = fc.string({ unit: fc.integer({ min: 1, max: 0x7f }).map((code) => String.fromCharCode(code)) });
const wellFormed = fc
  .string({ unit: 'binary' })
  .filter((text) => text.isWellFormed() && !text.includes('\0'));
const text = fc.oneof(
  odd,
  wellFormed,
  fc.constantFrom('null', 'NULL', '', '{}', '\\', '"', '\n', '\\n', '{"a":"\\n"}'),
);

test('texts of any kind, and none', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(text), { maxLength: 20 }), async (list) => {
      expect(JSON.parse(await readAs('text', arrayOf(list)))).toEqual(list);
    }),
    { numRuns: 500 },
  );
});

test('numbers as large as they are told apart, and none', async () => {
  const list = [0, null, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, null];
  expect(JSON.parse(await readAs('bigint', arrayOf(list)))).toEqual(list);
});

test.each(['a\0b', 'half \ud800 a pair', '\udc00'])(
  '%j, which Postgres cannot keep, is refused by it',
  async (bad) => {
    await expect(readAs('text', arrayOf(['good', bad]))).rejects.toMatchObject({ code: '22021' });
  },
);
