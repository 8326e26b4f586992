// The messages that docs/reference/errors.md shows are the ones that are said.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  createSemel,
  day,
  type ErrorCode,
  errorCodes,
  isSemelError,
  NotLanded,
  PartialSuccess,
  Rejected,
  type Semel,
} from 'semel';
import { memoryStore } from 'semel/memory';
import { sqliteStore } from 'semel/sqlite';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readPage, sections } from './page.ts';

const page = readPage('docs/reference/errors.md');
const contract = { effect: 'write-non-idempotent', per: 'ever' } as const;
const options = { namespace: 'shop', onWarning: () => undefined };

/** Makes a tool whose effect does this. */
const tool = (semel: Semel, name: string, run: () => unknown = () => 1, more: object = {}) =>
  semel.tool<Record<string, unknown>, unknown>({ ...contract, name, run, ...more });

const provoked: Partial<Record<ErrorCode, (semel: Semel, folder: string) => unknown>> = {
  INVALID_ARGS: (semel) =>
    tool(semel, 'refund', undefined, { input: z.object({ paymentId: z.string() }) })({ paymentId: 3 }),
  NOT_CANONICAL: (semel) => tool(semel, 'refund')({ at: new Date() }),
  NOT_PERMITTED: (semel) => tool(semel, 'refund', undefined, { permissions: ['refunds:write'] })({ id: 1 }),
  VERSION_MISMATCH: (semel) =>
    tool(semel, 'refund', undefined, { version: '2.1' })({ id: 1 }, { version: '1' }),
  NO_IDENTITY: (semel) => tool(semel, 'refund', undefined, { per: 'turn' })({ id: 1 }),
  KEY_CONFLICT: async (semel) => {
    const refund = tool(semel, 'refund');
    await refund({ id: 1 }, { key: 'k' });
    await refund({ id: 2 }, { key: 'k' });
  },
  IN_FLIGHT: async (semel) => {
    const refund = tool(semel, 'refund', undefined, { ifBusy: 'fail' });
    const begun = await semel.begin(refund, { id: 1 });
    try {
      await refund({ id: 1 });
    } finally {
      if (begun.execute) await begun.attempt.release();
    }
  },
  REENTRANT: async (semel) => {
    let inner: unknown;
    const refund = tool(semel, 'refund', async () => {
      inner = await refund({ id: 1 }).catch((error: unknown) => error);
    });
    await refund({ id: 1 });
    throw inner;
  },
  IN_DOUBT: (semel) =>
    tool(semel, 'mail.send', () => {
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    })({ id: 1 }),
  NOT_LANDED: (semel) =>
    tool(semel, 'flight.book', () => {
      throw new NotLanded('no seats at this moment');
    })({ id: 1 }),
  FAILED: (semel) =>
    tool(semel, 'card.charge', () => {
      throw new Rejected('card declined');
    })({ id: 1 }),
  PARTIAL_SUCCESS: (semel) =>
    tool(semel, 'mail.batch', () => {
      throw new PartialSuccess(['ann'], '1 of 2 mails is out');
    })({ id: 1 }),
  UNRECORDED: async () => {
    const store = memoryStore();
    const deaf = createSemel({
      ...options,
      store: { ...store, settle: () => Promise.reject(new Error('full')) },
    });
    await tool(deaf, 'card.charge')({ id: 1 }).finally(() => deaf.close({ grace: 0 }));
  },
  RESULT_OMITTED: async (semel) => {
    const refund = tool(semel, 'refund', undefined, { result: 'reference' });
    await refund({ id: 1 });
    await refund({ id: 1 });
  },
  EXPIRED: (semel) => tool(semel, 'data.cleanup')({ id: 1 }, { notAfter: new Date('2026-06-19T09:00:00Z') }),
  RESOLVE_STALE: async (semel) => {
    const { receipt } = await tool(semel, 'mail.send')
      .try({ id: 1 })
      .then((result) => result);
    await semel.doubts.resolve(`${receipt.id}@99`, 'notLanded');
  },
  STORE_UNAVAILABLE: async () => {
    const down = { ...memoryStore(), claim: () => Promise.reject(new Error('connect ECONNREFUSED')) };
    const semel = createSemel({ ...options, store: down });
    await tool(semel, 'refund')({ id: 1 }).finally(() => semel.close({ grace: 0 }));
  },
  STORE_UNSAFE: async (_semel, folder) => {
    const path = join(folder, 'ledger.db');
    await sqliteStore({ path, machine: { fileSystem: () => 0x6969 } }).open();
  },
  STORE_MOVED: async (_semel, folder) => {
    const path = join(folder, 'ledger.db');
    const store = sqliteStore({ path });
    await store.open();
    await store.close();
    const database = new DatabaseSync(path);
    database.prepare('UPDATE meta SET moved_to = ?').run('/srv/new/ledger.db');
    database.close();
    await sqliteStore({ path }).open();
  },
  CONTRACT_INVALID: (semel) =>
    tool(semel, 'refund', undefined, { provider: { name: 'ann.pay', window: '1h' } }),
  ABORTED: (semel) => tool(semel, 'refund')({ id: 1 }, { signal: AbortSignal.abort() }),
  STEP_CHANGED: async (semel) => {
    const at = Date.parse('2026-06-19T07:00:00Z');
    const run = (name: string) =>
      semel
        .job('blog', { per: day() }, async (job) => {
          await job.step('plan', () => 1);
          await job.once(name, () => 1);
          throw new Error('killed');
        })
        .run({ at });
    await run('publish').catch(() => undefined);
    await run('post');
  },
};

test.each(Object.entries(provoked))('%s is said as the page shows it', async (code, provoke) => {
  const folder = mkdtempSync(join(tmpdir(), 'semel-errors-'));
  // Answers as the ledger of the user would, which the command reaches without being told.
  const memory = memoryStore();
  const store = { ...memory, open: async () => ({ ...(await memory.open()), address: '' }) };
  await using semel = createSemel({ ...options, store });
  try {
    await provoke(semel, folder);
    expect.unreachable(`${code} did not happen`);
  } catch (error) {
    if (!isSemelError(error, code as ErrorCode)) throw error;
    expect(withoutAccidents(error.message, folder)).toBe(withoutAccidents(shown(code), folder));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the codes that are not provoked here are known', () => {
  expect(errorCodes.filter((code) => !(code in provoked))).toEqual(['LEASE_LOST', 'POISON']);
});

function shown(code: string): string {
  const lines = sections(page, [code.toLowerCase()]).split('\n');
  return lines
    .filter((line) => line.startsWith('> '))
    .map((line) => line.slice(2))
    .join(' ');
}

/** What is another one at each run. */
function withoutAccidents(message: string, folder: string): string {
  return message
    .replaceAll(folder, 'FOLDER')
    .replaceAll(/\/(mnt\/share|srv\/old)\b/g, 'FOLDER')
    .replaceAll(/\b[0-9a-z]{10}(?=[@ ])/g, (id) => (/\d/.test(id) ? 'ID' : id))
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'INSTANT')
    .replaceAll(/by \S+:\d+\./g, 'by OWNER.');
}
