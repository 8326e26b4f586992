// Lists reach Postgres as they are, whatever is in them.
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeArray, encodeBinaryArray, type Value } from '../../src/stores/postgres/array.ts';
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

/** As text and in binary form. */
async function readAs(type: 'text' | 'bytea' | 'bigint' | 'integer' | 'smallint', list: readonly Value[]) {
  const asText = client.query(`SELECT to_json($1::text::${type}[])::text AS list`, [encodeArray(list)]);
  const asBinary = client.query(`SELECT to_json($1::${type}[])::text AS list`, [
    encodeBinaryArray(`${type}[]`, list),
  ]);
  const [text, binary] = await Promise.allSettled([asText, asBinary]);
  if (text.status === 'rejected' || binary.status === 'rejected') {
    expect([text, binary]).toMatchObject(Array(2).fill({ reason: { code: '22021' } }));
    return 'refused';
  }
  const read = JSON.parse(text.value.rows[0].list);
  expect(JSON.parse(binary.value.rows[0].list)).toEqual(read);
  return read;
}

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
      expect(await readAs('text', list)).toEqual(list);
    }),
    { numRuns: 500 },
  );
});

test('numbers up to the limits of their type, bytes and nulls arrive unchanged', async () => {
  const list = [0, null, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, null];
  expect(await readAs('bigint', list)).toEqual(list);
  const small = [0, null, -1, 2 ** 31 - 1, -(2 ** 31)];
  expect(await readAs('integer', small)).toEqual(small);
  const bytes = ['\\x00ff7f80', null, '\\x', '\\x0123456789abcdef'];
  expect(await readAs('bytea', bytes)).toEqual(bytes);
  expect(await readAs('smallint', [0, -1, 32_767, null])).toEqual([0, -1, 32_767, null]);
});

test.each(['a\0b', 'half \ud800 a pair', '\udc00'])(
  '%j, which Postgres cannot keep, is refused by it',
  async (bad) => {
    expect(await readAs('text', ['good', bad])).toBe('refused');
  },
);
