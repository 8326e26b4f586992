// A database whose disk is full: what is called for is refused in so many words, nothing that was confirmed is lost,
// and when there is room again it goes on. Needs root, for a disk of its own.
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { postgresStore } from '../../src/stores/postgres/index.ts';
import { startPostgres } from '../servers/postgres.ts';

const isRoot = process.platform === 'linux' && process.getuid?.() === 0;

test.skipIf(!isRoot)(
  'Postgres on a disk that is full refuses clearly, loses nothing, and comes back',
  async () => {
    await using server = await startPostgres({ settings: { max_wal_size: '32MB', min_wal_size: '32MB' } });
    await server.kill('SIGINT');
    const { dataFolder } = server;
    const before = `${dataFolder}.before`;
    const mode = ['-o', 'size=256m,mode=0700'];
    execFileSync('cp', ['-a', dataFolder, before]);
    execFileSync('mount', ['-t', 'tmpfs', ...mode, 'tmpfs', dataFolder]);
    try {
      execFileSync('cp', ['-a', `${before}/.`, dataFolder]);
      rmSync(before, { recursive: true });
      await server.restart();

      const semel = createSemel({
        store: postgresStore({ url: server.url, timeoutMs: 2_000 }),
        cache: false,
      });
      const ran = new Map<number, number>();
      const tool = semel.tool({
        name: 'mail.send',
        effect: 'write-non-idempotent',
        per: 'ever',
        identity: ['n'],
        run({ n }: { n: number; body: string }) {
          ran.set(n, (ran.get(n) ?? 0) + 1);
          // What does not compress.
          return { n, text: Array.from({ length: 400 }, () => Math.random().toString(36)).join('') };
        },
      });
      const values = new Map<number, unknown>();
      const codes = new Set<string>();
      const ballast = join(dataFolder, 'ballast');
      let next = 0;
      const call = async () => {
        const n = next;
        next += 1;
        const result = await tool.try({ n, body: 'x' });
        if (result.ok) values.set(n, result.value);
        else codes.add(result.error.code);
        return result.ok;
      };
      for (let n = 0; n < 20; n += 1) expect(await call()).toBe(true);

      const { bavail, bsize } = statfsSync(dataFolder);
      writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 64 * 1024), 1));
      let refused = 0;
      for (let tries = 0; refused < 5 && tries < 20_000; tries += 1) if (!(await call())) refused += 1;
      expect(refused).toBe(5);
      // Whatever could not be claimed was not run; what ran and could not be settled says so.
      expect([...codes].every((code) => ['STORE_UNAVAILABLE', 'UNRECORDED'].includes(code))).toBe(true);

      rmSync(ballast);
      // Without room for its log a server may have ended itself.
      await server.restart();
      while (!(await call())) await new Promise((resolve) => setTimeout(resolve, 100));
      for (const [n, value] of values) {
        const again = await tool.try({ n, body: 'y' });
        expect(again.ok && again.value).toEqual(value);
      }
      for (const times of ran.values()) expect(times).toBe(1);
      await semel.close();
    } finally {
      await server.kill('SIGKILL');
      execFileSync('umount', ['-l', dataFolder]);
    }
  },
);
