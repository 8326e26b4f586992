// Which databases may keep a ledger, through which clients, and how the ledger is made there.
import { readFileSync, writeFileSync } from 'node:fs';
import { inspect } from 'node:util';
import pg from 'pg';
import postgres from 'postgres';
import { createSemel, type SemelError } from 'semel';
import { type PostgresStoreOptions, postgresStore } from 'semel/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migration, migrations, qualify, schemaVersion } from '../../src/stores/postgres/schema.ts';
import { claimRequest, take } from '../../src/testing/store-contract/attempt.ts';
import { type PostgresServer, startPostgres } from '../servers/postgres.ts';
import { emptyWrite } from './postgres-ledger.ts';

let server: PostgresServer;
let pool: pg.Pool;
let names = 0;

beforeAll(async () => {
  server = await startPostgres();
  pool = new pg.Pool({ connectionString: server.url });
});
afterAll(async () => {
  await pool?.end();
  await server?.stop();
});

function newSchema(): string {
  names += 1;
  return `ledger_${names}`;
}

async function refusal(options: PostgresStoreOptions): Promise<SemelError> {
  const store = postgresStore(options);
  try {
    await store.open();
  } catch (error) {
    return error as SemelError;
  } finally {
    await store.close();
  }
  throw new Error('it was opened');
}

/** A client that says something else of its server. */
function lying(about: Record<string, unknown>): { query: pg.Pool['query'] } {
  return {
    query: (async (text: string, values?: unknown[]) => {
      const answer = await pool.query(text, values);
      if (!text.includes('server_version_num')) return answer;
      return { rows: [{ found: JSON.stringify({ ...JSON.parse(answer.rows[0].found), ...about }) }] };
    }) as never,
  };
}

describe('clients', () => {
  const clients: Record<string, () => Promise<{ store: never; end(): Promise<unknown> }>> = {
    'a pool of pg': async () => {
      const client = new pg.Pool({ connectionString: server.url, max: 2 });
      return { store: client as never, end: () => client.end() };
    },
    'a client of pg': async () => {
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      return { store: client as never, end: () => client.end() };
    },
    'postgres.js': async () => {
      const client = postgres(server.url, { max: 2, onnotice: () => {} });
      return { store: client as never, end: () => client.end() };
    },
    'a URL': async () => ({ store: server.url as never, end: async () => {} }),
    'a URL with a schema': async () => ({
      store: `${server.url}?application_name=x&schema=${newSchema()}` as never,
      end: async () => {},
    }),
  };
  test.each(Object.entries(clients))('%s', async (_name, connect) => {
    const { store, end } = await connect();
    const semel = createSemel({ store, namespace: 'clients' });
    let runs = 0;
    const id = { n: newSchema() };
    const text = 'née \u{1f600} "quoted" \\ \u0001';
    const call = () =>
      semel.once('mail.send', id, async () => {
        runs += 1;
        return { run: runs, text };
      });
    expect(await Promise.all([call(), call()])).toEqual([
      { run: 1, text },
      { run: 1, text },
    ]);
    expect(await call()).toEqual({ run: 1, text });
    await semel.close();
    await end();
  });

  test('a pool that is shared with the program stays open', async () => {
    const semel = createSemel({ store: pool });
    await semel.open();
    await semel.close();
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  test('the address of a store leads to the same ledger again', async () => {
    const schema = newSchema();
    const first = createSemel({
      store: `${server.url}?schema=${schema}&durability=accept-loss`,
      namespace: 'there',
    });
    await first.once('mail.send', { n: 1 }, async () => 'sent');
    const { address } = await first.open();
    const again = createSemel({ store: address as string, namespace: 'there' });
    expect(await again.once('mail.send', { n: 1 }, async () => 'sent again')).toBe('sent');
    expect((await again.open()).address).toBe(address);
    await Promise.all([first.close(), again.close()]);
  });

  test('connection refused: the store is unavailable, and the error names its address', async () => {
    const error = await refusal({ url: 'postgres://ada:secret@127.0.0.1:1/shop' });
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retriable: true });
    expect(error.message).toContain('127.0.0.1:1/shop, schema semel');
    expect(JSON.stringify(error) + error.message).not.toContain('secret');
  });

  test('a required password is missing: waiting would not help', async () => {
    const said = 'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string';
    const error = await refusal({ client: { query: async () => Promise.reject(new Error(said)) } as never });
    expect([error.code, error.retriable]).toEqual(['STORE_UNAVAILABLE', false]);
    expect(error.message).toMatch(/wants a password .*PGPASSWORD/);
  });
});

describe('refusals', () => {
  test.each([
    [{ number: 130_022, version: '13.22' }, /version 13.22, which is too old.*version 14 or newer/s],
    [{ replica: true }, /is a replica or read-only.*primary/s],
    [{ read_only: 'on' }, /is a replica or read-only.*primary/s],
    [{ encoding: 'SQL_ASCII' }, /encoding SQL_ASCII.*UTF8/s],
    [{ fsync: 'off' }, /can lose confirmed writes: fsync is off.*accept-loss/s],
  ])('%j', async (about, message) => {
    const error = await refusal({ client: lying(about) as never, schema: newSchema() });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toMatch(message);
  });

  test('synchronous_commit = off of the session, unless the loss is accepted', async () => {
    const url = `${server.url}?options=${encodeURIComponent('-c synchronous_commit=off')}`;
    const schema = newSchema();
    expect((await refusal({ url, schema })).message).toMatch(/synchronous_commit is off/);
    const store = postgresStore({ url, schema, durability: 'accept-loss' });
    expect((await store.open()).forgets).toMatch(/synchronous_commit is off/);
    await store.close();
  });

  test('a session that commits without waiting is made to wait, whatever a pooler hands out', async () => {
    const schema = newSchema();
    await (await opened({ client: pool as never, schema })).close();
    const weak = new pg.Client({
      connectionString: `${server.url}?options=${encodeURIComponent('-c synchronous_commit=off')}`,
    });
    await weak.connect();
    await weak.query('BEGIN');
    await weak.query(emptyWrite(schema));
    expect((await weak.query('SHOW synchronous_commit')).rows).toEqual([{ synchronous_commit: 'on' }]);
    await weak.query('COMMIT');
    await weak.end();
  });

  test.each(['', 'Robert"; DROP TABLE students;--', 'pg_own', '1st', 'a'.repeat(64)])(
    'the schema name %j',
    async (schema) => {
      expect(() => postgresStore({ client: pool as never, schema })).toThrow(/is not a valid schema name/);
    },
  );

  test('a read-only database', async () => {
    await pool.query('CREATE DATABASE readers');
    await pool.query('ALTER DATABASE readers SET default_transaction_read_only = on');
    const url = server.url.replace(/\/postgres$/, '/readers');
    expect((await refusal({ url })).message).toMatch(/read-only/);
  });

  test('a user without privileges is refused, with what to grant', async () => {
    const schema = newSchema();
    await (await opened({ client: pool as never, schema })).close();
    await pool.query('CREATE ROLE guest LOGIN');
    const url = server.url.replace(/\/\/[^@]*@/, '//guest@');
    expect((await refusal({ url, schema })).message).toMatch(/may not use the ledger.*Grant/s);
  });
});

async function opened(options: PostgresStoreOptions) {
  const store = postgresStore(options);
  await store.open();
  return store;
}

test.each(['repeatable read', 'serializable'])(
  'a connection at isolation level %s is refused: it would not see the row it waited for',
  async (level) => {
    const options = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`;
    const client = new pg.Pool({ connectionString: server.url, options, max: 1 });
    const schema = newSchema();
    const error = await refusal({ client: client as never, schema });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE' });
    expect(error.message).toMatch(/isolation level/);
    // A pooler may give such a connection later, when the store is open.
    const store = await opened({ client: pool as never, schema });
    await take(store);
    await store.close();
    const late = client.query(emptyWrite(schema));
    await expect(late).rejects.toMatchObject({ code: 'SM004' });
    for (const call of ["remove('[]', 1)", "append('[]', 1)", "refill('x', '[]', '[]', '[]', 0)"])
      await expect(client.query(qualify(schema, `SELECT semel.${call}`))).rejects.toMatchObject({
        code: 'SM004',
      });
    await client.end();
  },
);

test.each([
  ['client_encoding = LATIN1', /converts text to LATIN1/],
  ['array_nulls = off', /array_nulls is off/],
])('a connection with %s is refused: another one would not find or read what it writes', async (set, why) => {
  const client = new pg.Pool({ connectionString: server.url, max: 1 });
  await client.query(`SET ${set}`);
  const error = await refusal({ client: client as never, schema: newSchema() });
  expect(error).toMatchObject({ code: 'STORE_UNSAFE', message: expect.stringMatching(why) });
  await client.end();
});

test('a connection that converts no text may be used', async () => {
  const client = new pg.Pool({ connectionString: server.url, max: 1 });
  await client.query('SET client_encoding = SQL_ASCII');
  const store = await opened({ client: client as never, schema: newSchema() });
  await store.close();
  await client.end();
});

test('a ledger whose rows are hidden from its user is refused', async () => {
  const schema = newSchema();
  const store = await opened({ url: server.url, schema });
  await store.close();
  await pool.query(`CREATE ROLE ${schema} LOGIN;
    GRANT USAGE ON SCHEMA ${schema} TO ${schema};
    GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO ${schema}`);
  const url = server.url.replace('postgres@', `${schema}@`);
  await (await opened({ url, schema })).close();
  for (const table of ['records', 'events']) {
    await pool.query(`ALTER TABLE ${schema}.${table} ENABLE ROW LEVEL SECURITY`);
    const error = await refusal({ url, schema });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE' });
    expect(error.message).toMatch(/Row security hides records/);
    await pool.query(`ALTER TABLE ${schema}.${table} DISABLE ROW LEVEL SECURITY`);
  }
});

describe('the schema', () => {
  test('is as the snapshot in the repository shows it', async () => {
    const text = `${migrations
      .flat()
      .map((statement) => `${statement};`)
      .join('\n\n')}\n`;
    const file = new URL('postgres-schema.sql', import.meta.url);
    if (process.env.UPDATE_SCHEMA) writeFileSync(file, text);
    expect(text).toBe(readFileSync(file, 'utf8'));
  });

  test('is made once by twenty programs that start at the same moment', async () => {
    const schema = newSchema();
    const stores = await Promise.all(Array.from({ length: 20 }, () => opened({ url: server.url, schema })));
    const { rows } = await pool.query(qualify(schema, 'SELECT count(*)::int AS n FROM semel.meta'));
    expect(rows).toEqual([{ n: 1 }]);
    await Promise.all(stores.map((store) => store.close()));
  });

  test('is not created with migrate: false', async () => {
    const schema = newSchema();
    const error = await refusal({ client: pool as never, schema, migrate: false });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE' });
    expect(error.message).toMatch(/does not exist yet.*semel store migrate/s);
    const { rows } = await pool.query(`SELECT to_regnamespace('${schema}') IS NULL AS absent`);
    expect(rows).toEqual([{ absent: true }]);
  });

  test('grows while older programs work on, until they are locked out on purpose', async () => {
    const schema = newSchema();
    const old = await opened({ client: pool as never, schema });
    // The next version adds a column: whoever does not know of it goes on.
    const next = [...migrations, ['ALTER TABLE semel.records ADD COLUMN colour text']];
    await pool.query(migration(schema, next));
    await take(old, { key: 'mail.send/=1' });
    const other = await opened({ client: pool as never, schema });
    await take(other, { key: 'mail.send/=2' });
    await pool.query(qualify(schema, `UPDATE semel.meta SET min_writer = ${schemaVersion + 1}`));
    await expect(old.claim(claimRequest({ key: 'mail.send/=3' }))).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      correctiveAction: 'Upgrade semel in this program.',
    });
    expect((await refusal({ client: pool as never, schema })).message).toMatch(/newer version of semel/);
    await Promise.all([old.close(), other.close()]);
  });

  test('of before the first release is refused, and left as it is', async () => {
    const schema = newSchema();
    await (await opened({ client: pool as never, schema })).close();
    await pool.query(qualify(schema, 'UPDATE semel.meta SET version = 1'));
    const error = await refusal({ client: pool as never, schema });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE' });
    expect(error.message).toMatch(`has schema 1, but this program needs ${schemaVersion}`);
  });

  test('that was moved away refuses running and new processes', async () => {
    const schema = newSchema();
    const store = await opened({ client: pool as never, schema });
    const holder = await take(store);
    await pool.query(qualify(schema, "UPDATE semel.meta SET moved_to = 'postgres://elsewhere'"));
    await expect(holder.succeed()).rejects.toMatchObject({ code: 'STORE_MOVED' });
    expect(await refusal({ client: pool as never, schema })).toMatchObject({ code: 'STORE_MOVED' });
    await store.close();
  });

  test('that is gone fails closed', async () => {
    const schema = newSchema();
    const store = await opened({ client: pool as never, schema });
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await expect(store.claim(claimRequest())).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    await store.close();
  });
});

test('the password of a URL is in no log that prints what is true of the store', async () => {
  const url = new URL(server.url);
  url.password = 'p4ss-of-the-test';
  await using semel = createSemel({ store: url.href, namespace: 'shop', onWarning: () => undefined });
  const facts = await semel.open();
  expect(`${inspect(facts)}${JSON.stringify(facts)}${JSON.stringify({ ...facts })}`).not.toContain('p4ss');
  expect(facts.address).toContain('p4ss-of-the-test');
});

test('a ledger without its primary key, as in the middle of a restore, is refused: a key could be taken twice', async () => {
  const schema = newSchema();
  const [store, other] = await Promise.all([1, 2].map(() => opened({ url: server.url, schema })));
  await pool.query(`ALTER TABLE ${schema}.records DROP CONSTRAINT records_pkey`);
  // Also by whoever has opened it before.
  for (const each of [store, other])
    await expect(take(each as typeof store & {})).rejects.toMatchObject({
      code: 'STORE_UNSAFE',
      retriable: false,
    });
  await Promise.all([store?.close(), other?.close()]);
  const error = await refusal({ url: server.url, schema });
  expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
  expect(error.message).toMatch(/has no primary key/);
  await pool.query(`ALTER TABLE ${schema}.records ADD PRIMARY KEY (namespace, key)`);
  await (await opened({ url: server.url, schema })).close();
});

test.each(['camel', 'pascal', 'kebab'] as const)(
  'a client that renames columns (%s) hides no trigger',
  async (transform) => {
    const schema = newSchema();
    await (await opened({ url: server.url, schema })).close();
    await pool.query(`CREATE FUNCTION ${schema}.act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
      CREATE TRIGGER act AFTER UPDATE ON ${schema}.records FOR EACH ROW EXECUTE FUNCTION ${schema}.act()`);
    const client = postgres(server.url, { transform: postgres[transform], max: 1 });
    const error = await refusal({ client, schema });
    await client.end();
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toMatch(transform === 'pascal' ? /renames columns/ : /has a trigger/);
  },
);

test.each(['write', 'look', 'own_swap', 'now_ms'])(
  'a schema with a second function %s is refused: calls would be ambiguous',
  async (name) => {
    const schema = newSchema();
    await (await opened({ url: server.url, schema })).close();
    await pool.query(`CREATE FUNCTION ${schema}.mine() RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;
      CREATE FUNCTION ${schema}.mine(n integer) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$`);
    await (await opened({ url: server.url, schema })).close();
    await pool.query(
      `CREATE FUNCTION ${schema}.${name}(claim_key text[]) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$`,
    );
    const error = await refusal({ url: server.url, schema });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toContain(`a second function named "${name}"`);
    await pool.query(`DROP FUNCTION ${schema}.${name}(text[])`);
    await (await opened({ url: server.url, schema })).close();
  },
);

test.each(['AFTER UPDATE ON records', 'AFTER INSERT ON records', 'BEFORE UPDATE ON meta'])(
  'a ledger with a trigger %s is refused while it is enabled',
  async (when) => {
    const schema = newSchema();
    await (await opened({ url: server.url, schema })).close();
    const [, table] = when.split(' ON ');
    await pool.query(`CREATE FUNCTION ${schema}.act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
    CREATE TRIGGER "audit it" ${when.replace(' ON ', ` ON ${schema}.`)} FOR EACH ROW EXECUTE FUNCTION ${schema}.act()`);
    const error = await refusal({ url: server.url, schema });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toMatch(/has a trigger, "audit it": it can change what semel writes/);
    await pool.query(`ALTER TABLE ${schema}.${table} DISABLE TRIGGER "audit it"`);
    await (await opened({ url: server.url, schema })).close();
  },
);

test.each(['records', 'meta'])(
  'a ledger whose %s are UNLOGGED is refused, unless the loss is accepted',
  async (table) => {
    const schema = newSchema();
    await (await opened({ url: server.url, schema })).close();
    await pool.query(`ALTER TABLE ${schema}.${table} SET UNLOGGED`);
    const error = await refusal({ url: server.url, schema });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toMatch(/are UNLOGGED: a server crash empties them/);
    const store = postgresStore({ url: server.url, schema, durability: 'accept-loss' });
    expect((await store.open()).forgets).toMatch(/server crash empties/);
    await store.close();
  },
);

test.each(['UPDATE ON records', 'SELECT ON records', 'INSERT ON events'])(
  'a user who may make records, without the right to %s, is refused before an effect runs',
  async (right) => {
    const schema = newSchema();
    await (await opened({ url: server.url, schema })).close();
    await pool.query(`CREATE ROLE ${schema} LOGIN;
      GRANT USAGE ON SCHEMA ${schema} TO ${schema};
      GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO ${schema}`);
    const url = server.url.replace('postgres@', `${schema}@`);
    await (await opened({ url, schema })).close();
    await pool.query(`REVOKE ${right.replace('ON ', `ON ${schema}.`)} FROM ${schema}`);
    const error = await refusal({ url, schema });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toMatch(/can create records .*Grant it/s);
    // Whoever only reads is welcome.
    await pool.query(`REVOKE ALL ON ${schema}.records, ${schema}.events FROM ${schema};
      GRANT SELECT ON ${schema}.records, ${schema}.events TO ${schema}`);
    await (await opened({ url, schema })).close();
  },
);
