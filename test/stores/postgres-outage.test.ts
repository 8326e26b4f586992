// A database that goes away and comes back under 64 callers: nothing runs unguarded, nothing is lost.
import { createSemel, isSemelError } from 'semel';
import { postgresStore } from 'semel/postgres';
import { expect, test } from 'vitest';
import { startPostgres } from '../servers/postgres.ts';

test('while the database is down calls are refused at once, and no effect runs', async () => {
  await using server = await startPostgres();
  const semel = createSemel({
    store: postgresStore({ url: server.url, timeoutMs: 2_000 }),
    namespace: 'outage',
    cache: false,
  });
  const ran = new Map<number, number>();
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: ({ n }: { n: number }) => {
      ran.set(n, (ran.get(n) ?? 0) + 1);
      return n;
    },
  });
  let next = 0;
  let stopped = false;
  let refused = 0;
  let done = 0;
  let refusedAtOnce = 0;
  const callers = Array.from({ length: 64 }, async () => {
    while (!stopped) {
      const n = next;
      next += 1;
      const result = await tool.try({ n });
      if (result.ok) done += 1;
      else {
        expect(['STORE_UNAVAILABLE', 'UNRECORDED']).toContain(result.error.code);
        refused += 1;
        if (isSemelError(result.error) && result.error.message.includes('was not tried again')) {
          refusedAtOnce += 1;
          expect(ran.has(n)).toBe(false);
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  });
  const until = async (isTrue: () => boolean) => {
    while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  await until(() => done > 200);
  await server.kill();
  await until(() => refusedAtOnce > 200);
  const ranSoFar = ran.size;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(ran.size).toBe(ranSoFar);
  const doneBefore = done;
  await server.restart();
  await until(() => done > doneBefore + 200);
  stopped = true;
  await Promise.all(callers);
  await semel.close();
  expect(refused).toBeGreaterThan(200);
  for (const times of ran.values()) expect(times).toBe(1);
});
