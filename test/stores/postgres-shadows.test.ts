// Whoever may create in `public` can define a function or operator that fits the types of a statement better than the
// database's own does. It would run with the rights of semel's user.
import pg from 'pg';
import { createSemel, Rejected } from 'semel';
import { postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(shadows);
  await client.end();
});
afterAll(() => server?.stop());

const types = [
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'text',
  'name',
  'json',
  'boolean',
  'regclass',
  'text[]',
  'bigint[]',
  'smallint[]',
  'integer[]',
];
const operators = ['=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '||', '->>', '->', '&'];
const functions = [
  'unnest',
  'cardinality',
  'array_to_json',
  'pg_total_relation_size',
  'floor',
  'length',
  'hashtext',
  'to_regclass',
  'current_setting',
  'json_array_elements_text',
  'chr',
];
const aggregates = ['array_agg', 'json_agg', 'min', 'max', 'count'];

const listed = (names: readonly string[]) => `'{${names.map((name) => `"${name}"`).join(',')}}'::text[]`;
const telling = (what: string) => `format('BEGIN RAISE EXCEPTION %L; END', 'shadowed: ' || ${what})`;

/** Each of these for each type for which the database has none itself. */
const shadows = `DO $do$
DECLARE a text; b text; name text; n integer := 0;
BEGIN
  SET LOCAL search_path = pg_catalog;
  FOREACH a IN ARRAY ${listed(types)} LOOP
    n := n + 1;
    FOREACH b IN ARRAY ${listed(types)} LOOP
      EXECUTE format('CREATE FUNCTION public.shadow_of(%s, %s) RETURNS boolean LANGUAGE plpgsql AS %L', a, b,
        ${telling(`a || ', ' || b`)});
      FOREACH name IN ARRAY ${listed(operators)} LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_operator
          WHERE oprname = name AND oprleft = a::regtype AND oprright = b::regtype);
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.shadow_of)', name, a, b);
      END LOOP;
    END LOOP;
    FOREACH name IN ARRAY ${listed(functions)} LOOP
      CONTINUE WHEN EXISTS (SELECT FROM pg_proc
        WHERE proname = name AND pronamespace = 'pg_catalog'::regnamespace AND pronargs = 1 AND proargtypes[0] = a::regtype);
      EXECUTE format('CREATE FUNCTION public.%s(%s) RETURNS boolean LANGUAGE plpgsql AS %L', name, a,
        ${telling(`name || ' of ' || a`)});
    END LOOP;
    EXECUTE format('CREATE FUNCTION public.step_%s(text, %s) RETURNS text LANGUAGE plpgsql AS %L', n, a,
      ${telling(`'an aggregate of ' || a`)});
    FOREACH name IN ARRAY ${listed(aggregates)} LOOP
      CONTINUE WHEN EXISTS (SELECT FROM pg_proc
        WHERE proname = name AND pronamespace = 'pg_catalog'::regnamespace AND proargtypes[0] = a::regtype);
      EXECUTE format('CREATE AGGREGATE public.%s(%s) (SFUNC = public.step_%s, STYPE = text)', name, a, n);
    END LOOP;
  END LOOP;
END $do$`;

test.each(['a URL', 'a pool'])('%s meets nothing that others have put into the search path', async (how) => {
  const pool = new pg.Pool({ connectionString: server.url });
  const schema = `ledger_${how.length}`;
  const store = postgresStore({ schema, ...(how === 'a URL' ? { url: server.url } : { client: pool }) });
  const semel = createSemel({ store, namespace: 'shadows' });
  const once = (n: number) =>
    semel.within({ conversation: 'c' }, () => semel.once('pay', { n }, async () => ({ n })));
  try {
    expect(await Promise.all([once(1), once(2), once(1)])).toEqual([{ n: 1 }, { n: 2 }, { n: 1 }]);
    await expect(
      semel.once('lost', { n: 1 }, async () => Promise.reject(new Error('no reply'))),
    ).rejects.toMatchObject({ code: 'IN_DOUBT' });
    expect((await semel.records.list({ conversation: 'c' })).items).toHaveLength(2);
    const [doubt] = (await semel.doubts.list()).items;
    await semel.doubts.resolve(doubt?.ref as string, 'landed', { by: 'a test' });
    expect(await semel.doubts.list()).toMatchObject({ items: [] });
    expect(await store.namespaces()).toEqual(['shadows']);
    await store.prune(10);
    const key = { namespace: 'shadows', key: doubt?.key as string };
    expect(await store.raw?.about()).toMatchObject({ records: 3 });
    expect((await store.raw?.page({ openOnly: false, after: undefined, limit: 9 }))?.records).toHaveLength(3);
    expect(await store.raw?.find([key])).toMatchObject([{ row: key }]);
    await store.raw?.probe();
    await store.raw?.seal('elsewhere');
    await store.raw?.unseal();
  } finally {
    await semel.close();
    await pool.end();
  }
});

test('nor do staged calls, relays, and calls in a transaction', async () => {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  const store = postgresStore({ schema: 'ledger_outbox', url: server.url });
  await using semel = createSemel({ store, namespace: 'shadows' });
  const sent: string[] = [];
  const mail = semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    identity: ['to'],
    async run({ to }: { to: string; body?: string }) {
      if (to === 'nobody') throw new Rejected('no such address');
      sent.push(to);
    },
  });
  const note = semel.tool({
    name: 'note',
    effect: 'write-non-idempotent',
    per: 'ever',
    // Its record may be gone before the row is: the row is marked.
    window: '1s',
    run: async (_: { id: number }) => 'written',
  });
  try {
    await client.query('BEGIN');
    await note.inTransaction(client, { id: 1 });
    await mail.stage(client, { to: 'ada', body: 'one' }, { group: { name: 'a', strict: true } });
    await mail.stage(client, { to: 'ada', body: 'two' });
    await mail.stage(client, { to: 'nobody' }, { group: 'a' });
    await note.stage(client, { id: 2 });
    await client.query('COMMIT');
    expect(await semel.outbox.drain()).toMatchObject({ delivered: 2, dead: 1 });
    const [dead] = (await store.outbox?.list({ namespace: 'shadows', state: 'dead', limit: 9 })) ?? [];
    const { n = 0, key = '' } = dead ?? {};
    expect(await store.outbox?.find('shadows', key)).toMatchObject({ n });
    expect(await store.outbox?.keep([{ n, dueAt: dead?.dueAt ?? 0 }], 1_000)).toMatchObject({ kept: [n] });
    expect(await store.outbox?.retry(n)).toBe(true);
    expect(await store.outbox?.drop(n)).toBe(true);
    expect(sent).toEqual(['ada']);
  } finally {
    await client.end();
  }
});
