// Which Redis may keep a ledger, and through which clients.
import { Redis } from 'ioredis';
import { createClient, createClientPool } from 'redis';
import { createSemel, type SemelError } from 'semel';
import { type RedisStoreOptions, redisStore } from 'semel/redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claimRequest, take } from '../../src/testing/store-contract/attempt.ts';
import { type RedisServer, startRedis } from '../servers/redis.ts';

let server: RedisServer;
let client: Redis;
let names = 0;

beforeAll(async () => {
  const started = await startRedis();
  if (started === undefined) return;
  server = started;
  client = new Redis(server.url);
});
afterAll(async () => {
  client?.disconnect();
  await server?.stop();
});

function newPrefix(): string {
  names += 1;
  return `ledger-${names}`;
}

async function refusal(options: RedisStoreOptions): Promise<SemelError> {
  const store = redisStore({ prefix: newPrefix(), ...options });
  try {
    await store.open();
  } catch (error) {
    return error as SemelError;
  } finally {
    await store.close();
  }
  throw new Error('it was opened');
}

/** A client whose server answers this question otherwise. */
function lying(answer: (command: string, truth: unknown) => unknown): { call: Redis['call'] } {
  return {
    call: (async (...[name, ...args]: string[]) => {
      const command = [name, ...args].join(' ').toLowerCase();
      return answer(command, await client.call(name as string, ...args));
    }) as never,
  };
}

const told = (name: string, value: string) =>
  lying((command, truth) =>
    command === 'info'
      ? String(truth).replace(new RegExp(`^${name}:.*$`, 'm'), `${name}:${value}`)
      : command === `config get ${name.replaceAll('_', '-')}`
        ? [name, value]
        : truth,
  );

describe('clients', () => {
  const clients: Record<string, () => Promise<{ store: never; end(): unknown }>> = {
    'a client of ioredis': async () => {
      const own = new Redis(server.url);
      return { store: own as never, end: () => own.disconnect() };
    },
    'a client of ioredis that pipelines by itself': async () => {
      const own = new Redis(server.url, { enableAutoPipelining: true });
      return { store: own as never, end: () => own.disconnect() };
    },
    'a client of redis': async () => {
      const own = createClient({ url: server.url });
      await own.connect();
      return { store: own as never, end: () => own.destroy() };
    },
    'a client of redis with the older protocol': async () => {
      const own = createClient({ url: server.url, RESP: 2 });
      await own.connect();
      return { store: own as never, end: () => own.destroy() };
    },
    'a pool of redis': async () => {
      const own = createClientPool({ url: server.url });
      await own.connect();
      return { store: own as never, end: () => own.destroy() };
    },
    'a URL': async () => ({ store: server.url as never, end() {} }),
    'a URL with a prefix': async () => ({ store: `${server.url}?prefix=${newPrefix()}` as never, end() {} }),
  };
  for (const [name, make] of Object.entries(clients)) {
    test(name, async () => {
      const { store, end } = await make();
      const semel = createSemel({ store, namespace: name });
      let runs = 0;
      const run = () => {
        runs += 1;
        return { runs };
      };
      expect(await semel.once('job', '1', run)).toEqual({ runs: 1 });
      expect(await semel.once('job', '1', run)).toEqual({ runs: 1 });
      expect((await semel.open()).kind).toBe('redis');
      await semel.close();
      await end();
    });
  }

  test('a pool whose commands overtake each other does not declare a live holder dead', async () => {
    const prefix = newPrefix();
    const leaseMs = 300;
    const holder = await take(redisStore({ client, prefix }), { leaseMs });
    let isLate = false;
    const pool = {
      totalClients: 2,
      execute() {},
      async sendCommand([name, ...args]: string[]) {
        if (isLate && name === 'time') {
          await holder.renew(60_000);
          await new Promise((resolve) => setTimeout(resolve, 2 * leaseMs));
        }
        return client.call(name as string, ...args);
      },
    };
    const store = redisStore({ client: pool, prefix });
    await store.open();
    isLate = true;
    expect(await store.read(holder.namespace, holder.key)).toMatchObject({ lapsed: false });
  });

  test('a client that rewrites keys is refused: a list of doubts would be empty', async () => {
    const own = new Redis(server.url, { keyPrefix: 'app:' });
    const error = await refusal({ client: own });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toMatch(/key prefix.*app:.*prefix: 'app:/s);
    own.disconnect();
  });

  test('a client that returns numbers as strings is refused, not reported as damage', async () => {
    const own = new Redis(server.url, { stringNumbers: true });
    const error = await refusal({ client: own });
    expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
    expect(error.message).toContain('stringNumbers');
    own.disconnect();
  });

  test.each(['before', 'after'])(
    'a client inside MULTI, begun %s it was opened, is refused',
    async (when) => {
      const own = new Redis(server.url);
      const semel = createSemel({
        store: redisStore({ client: own, prefix: newPrefix() }),
        namespace: 'multi',
      });
      if (when === 'after') await semel.open();
      await own.call('multi');
      let runs = 0;
      const error: SemelError = await semel
        .once('job', '1', () => ++runs)
        .then(
          () => expect.unreachable(),
          (refused) => refused,
        );
      expect(error).toMatchObject({ code: 'STORE_UNSAFE', retriable: false });
      expect(error.message).toContain('MULTI');
      expect(runs).toBe(0);
      await own.call('discard');
      expect(await semel.once('job', '1', () => ++runs)).toBe(1);
      await semel.close();
      own.disconnect();
    },
  );

  test('a client that was never connected is distinguished from a server that is down', async () => {
    const error = await refusal({ client: createClient({ url: server.url }) });
    expect(error.code).toBe('STORE_UNAVAILABLE');
    expect(error.message).toContain('client.connect()');
  });

  test('connection refused', async () => {
    const error = await refusal({ url: 'redis://127.0.0.1:1', timeoutMs: 2_000 });
    expect([error.code, error.retriable]).toEqual(['STORE_UNAVAILABLE', true]);
  });

  test('a prefix that would not stay in one slot is refused', async () => {
    expect(() => redisStore({ client, prefix: 'a{b}' })).toThrow(/prefix/);
  });
});

describe('durability is checked', () => {
  const refused: Record<string, [() => RedisStoreOptions, RegExp]> = {
    'an eviction policy': [() => ({ client: told('maxmemory_policy', 'allkeys-lru') }), /allkeys-lru/],
    'no log': [() => ({ client: told('aof_enabled', '0') }), /appendonly is off/],
    'a log that is synced every second': [() => ({ client: told('appendfsync', 'everysec') }), /everysec/],
    'a replica': [() => ({ client: told('role', 'slave') }), /replica/],
    'an old version': [() => ({ client: told('redis_version', '6.0.16') }), /too old/],
    'one server of a cluster': [() => ({ client: told('cluster_enabled', '1') }), /cluster/],
    'settings that cannot be read': [
      () => ({
        client: lying((command, truth) => {
          if (command.startsWith('config')) throw new Error('NOPERM no permission');
          return truth;
        }),
      }),
      /cannot be read/,
    ],
  };
  for (const [name, [options, message]] of Object.entries(refused)) {
    test(`${name} is refused`, async () => {
      const error = await refusal(options());
      expect(error.code).toBe('STORE_UNSAFE');
      expect(error.message).toMatch(message);
      expect(error.retriable).toBe(false);
    });
  }

  test('accepting the loss says what can be lost', async () => {
    const store = redisStore({
      client: told('appendfsync', 'everysec'),
      prefix: newPrefix(),
      durability: 'accept-loss',
    });
    expect((await store.open()).forgets).toMatch(/everysec/);
    await take(store);
    const semel = createSemel({ store: `${server.url}?durability=accept-loss&prefix=${newPrefix()}` });
    expect((await semel.open()).forgets).toBeUndefined();
    await semel.close();
  });

  test('replicas are named as what may forget', async () => {
    const store = redisStore({ client: told('connected_slaves', '1'), prefix: newPrefix() });
    expect((await store.open()).forgets).toMatch(/failover/);
  });

  test('a real server without a log is refused, and one that evicts', async () => {
    await using weak = await startRedis({
      persistence: 'none',
      settings: { 'maxmemory-policy': 'allkeys-lru' },
    });
    const error = await refusal({ url: weak?.url as string });
    expect(error.message).toContain('appendonly is off');
    expect(error.message).toContain('allkeys-lru');
  });
});

describe('failures are distinguished', () => {
  const failing: Record<string, [string, boolean, RegExp]> = {
    "READONLY You can't write against a read only replica.": ['STORE_UNSAFE', true, /primary/],
    'LOADING Redis is loading the dataset in memory': ['STORE_UNAVAILABLE', true, /loading its data/],
    'MISCONF Errors writing to the AOF file: No space left': ['STORE_UNAVAILABLE', true, /disk/],
    "OOM command not allowed when used memory > 'maxmemory'.": ['STORE_UNAVAILABLE', true, /memory/],
    'CLUSTERDOWN The cluster is down': ['STORE_UNAVAILABLE', true, /cluster/],
    'NOAUTH Authentication required.': ['STORE_UNAVAILABLE', false, /password/],
    'WRONGPASS invalid username-password pair': ['STORE_UNAVAILABLE', false, /password/],
    "NOPERM this user has no permissions to run the 'evalsha' command": [
      'STORE_UNSAFE',
      false,
      /may not use/,
    ],
    'BUSY Redis is busy running a script.': ['STORE_UNAVAILABLE', true, /script/],
    'MOVED 3999 127.0.0.1:6381': ['STORE_UNSAFE', false, /cluster client/],
    'Connection is closed.': ['STORE_UNAVAILABLE', true, /does not answer/],
    'The client is closed': ['STORE_UNAVAILABLE', true, /await client\.connect\(\)/],
    'The client is offline': ['STORE_UNAVAILABLE', true, /Call again when Redis answers/],
  };
  for (const [message, [code, retriable, sentence]] of Object.entries(failing)) {
    test(message, async () => {
      let isFailing = false;
      const store = redisStore({
        client: lying((_, truth) => {
          if (isFailing) throw new Error(message);
          return truth;
        }),
        prefix: newPrefix(),
      });
      await store.open();
      isFailing = true;
      const error: SemelError = await store.claim(claimRequest()).then(
        () => undefined,
        (thrown) => thrown,
      );
      expect([error.code, error.retriable]).toEqual([code, retriable]);
      expect(error.message).toMatch(sentence);
      isFailing = false;
      await take(store);
    });
  }

  test('a key that another program wrote fails alone', async () => {
    const prefix = newPrefix();
    const store = redisStore({ client, prefix });
    await store.open();
    await client.lpush(`${prefix}{0}r:shop\0mail.send/=theirs`, 'x');
    const [theirs, ours] = await Promise.allSettled([
      take(store, { key: 'mail.send/=theirs' }),
      take(store, { key: 'mail.send/=ours' }),
    ]);
    expect([theirs.status, ours.status]).toEqual(['rejected', 'fulfilled']);
  });

  test('a record that cannot be read fails alone, and so does a look at it', async () => {
    const prefix = newPrefix();
    const store = redisStore({ client, prefix });
    await store.open();
    await client.set(`${prefix}{0}r:shop\0mail.send/=odd`, 'x');
    const keys = ['mail.send/=before', 'mail.send/=odd', 'mail.send/=after'];
    const answers = await Promise.allSettled(keys.map((key) => take(store, { key })));
    const looks = await Promise.allSettled(keys.map((key) => store.read('shop', key)));
    for (const all of [answers, looks]) {
      expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(all[1]).toMatchObject({ reason: { code: 'STORE_UNSAFE', retriable: false } });
      expect(String((all[1] as PromiseRejectedResult).reason)).toContain('mail.send/=odd');
    }
  });

  test('scripts that the server forgot are sent again', async () => {
    const store = redisStore({ client, prefix: newPrefix() });
    const holder = await take(store);
    await client.script('FLUSH');
    expect((await holder.renew()).held).toBe(true);
    await client.script('FLUSH');
    expect((await holder.succeed()).settled).toBe(true);
  });

  test('a server that hangs is not waited for for ever', async () => {
    const store = redisStore({ client, prefix: newPrefix(), timeoutMs: 300 });
    await store.open();
    await server.pause();
    try {
      await expect(take(store)).rejects.toThrow(/no answer within 300 ms/);
    } finally {
      await server.resume();
    }
  });

  test('a lost reply is asked again by its token and answers "yours"', async () => {
    let isDeaf = false;
    const store = redisStore({
      client: lying((command, truth) => {
        if (isDeaf && command.startsWith('eval')) throw new Error('read ECONNRESET');
        return truth;
      }),
      prefix: newPrefix(),
    });
    await store.open();
    const request = claimRequest();
    isDeaf = true;
    await expect(store.claim(request)).rejects.toThrow(/ECONNRESET/);
    isDeaf = false;
    const answer = await store.claim(request);
    expect([answer.won, answer.record?.attempts]).toEqual([true, 1]);
  });
});
