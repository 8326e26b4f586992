// What each error says, word for word: what happened, then what to do.

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

const messages: Partial<Record<ErrorCode, string>> = {
  IN_DOUBT:
    'mail.send: ECONNRESET: socket hang up. It may have landed, so nothing was done again. Check whether it landed, then run: npx semel resolve 7f3a0c2b9d@1 landed/not-landed --namespace shop ("not landed" only in 60 s: a request may be on its way). With `verify` or `provider` in its contract, semel decides this without a person. More: npx semel explain IN_DOUBT.',
  IN_FLIGHT:
    'refund is being executed by web-1:4711. Call again later: the same call is being executed right now.',
  FAILED:
    'card.charge failed: card declined. The target refused it. Change the request, or wait for the failure window to end.',
  NOT_LANDED:
    'flight.book did not land: no seats at this moment. It definitely did not land: the same call may be tried again.',
  NO_IDENTITY:
    "refund: `per: 'turn'` needs a conversation, and none was given. Wrap the call in `semel.within({ conversation, turn }, …)` or pass them as options.",
  RESULT_OMITTED:
    'refund was done at 2026-06-19T09:02:11.000Z; its value cannot be returned (only the reference is kept). It is done: do not do it again. Fetch the value from the target, by its reference where there is one.',
  UNRECORDED:
    'card.charge is done, but the store did not take the record. It is done: do not repeat it. The value is on the error.',
  STORE_UNAVAILABLE:
    'The store failed: connect ECONNREFUSED. Nothing was run. Call again when the store answers.',
  ABORTED: 'refund: the caller gave up. Nothing was run. Call again if it is still wanted.',
  PARTIAL_SUCCESS:
    "mail.batch: 1 of 2 mails is out. Only part of it landed, so nothing was done again. Do the rest by hand, then run: npx semel resolve 7f3a0c2b9d@1 landed --namespace shop. With via: 'steps' in its contract, a call again does the rest. More: npx semel explain PARTIAL_SUCCESS.",
  INVALID_ARGS:
    'refund: the args do not fit its schema (args.paymentId: Invalid input: expected string, received number). Correct the arguments and call again.',
  NOT_CANONICAL: 'args.at is a Date; a key cannot be derived from it. Pass date.toISOString().',
  NOT_PERMITTED:
    'refund needs refunds:write, which this call does not have. Ask the person who grants permissions, or pass `permissions` with the call.',
  KEY_CONFLICT:
    'refund: this key was already used with other identity args. Use another key for another intent.',
  REENTRANT:
    'refund was called from inside its own run, with the same identity. Do not call a tool from inside its own run with the same identity.',
  EXPIRED:
    'data.cleanup must not start after 2026-06-19T09:00:00.000Z (`notAfter`). It is too late for this call. Make a new one if it is still wanted.',
  VERSION_MISMATCH:
    'refund has version 2.1; the call asks for 1. Request the deployed version, or deploy the requested one.',
  RESOLVE_STALE:
    'mail.send 7f3a0c2b9d has been settled since it was looked at (succeeded). There is nothing left to decide.',
  STORE_UNSAFE:
    "The ledger /mnt/share/ledger.db would be on a network file system (NFS). SQLite cannot lock and share memory there. Choose a place on a local disk with `store: 'sqlite:…'` or SEMEL_STORE, or use Postgres or Redis.",
  STORE_MOVED:
    'The ledger /srv/old/ledger.db has moved to /srv/new/ledger.db. Point this process at /srv/new/ledger.db.',
  CONTRACT_INVALID:
    'refund: ann.pay remembers a key for 1h, this contract for 1d; in between, nothing could decide a doubt. Add `verify`, or shorten `window`.',
  STEP_CHANGED:
    "blog 2026-06-19: its steps are not those of its last attempt. Before: plan, publish. Now: plan, post. Nothing more was claimed. Run the program as it was; or accept the new steps with run({ acceptChange: 'why' }): steps of the same name and args keep their results, all others run.",
};

test.each(Object.entries(provoked))('%s says what happened and what to do', async (code, provoke) => {
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
    expect(withoutAccidents(error.message, folder)).toBe(
      withoutAccidents(messages[code as ErrorCode] ?? '', folder),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the codes that are not provoked here are known', () => {
  expect(errorCodes.filter((code) => !(code in provoked))).toEqual(['LEASE_LOST', 'POISON']);
});

/** What is another one at each run. */
function withoutAccidents(message: string, folder: string): string {
  return message
    .replaceAll(folder, 'FOLDER')
    .replaceAll(/\/(mnt\/share|srv\/old)\b/g, 'FOLDER')
    .replaceAll(/\b[0-9a-z]{10}(?=[@ ])/g, (id) => (/\d/.test(id) ? 'ID' : id))
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'INSTANT')
    .replaceAll(/by \S+:\d+\./g, 'by OWNER.');
}
