// How SQLite reads for the dashboard: the plan of every statement that its views execute. None may go through the whole table of records.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { digestToken, startServer } from '../../src/server/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { fillNow } from '../dashboard/ledger.ts';

const token = 'token-of-the-operator-which-is-long-enough-to-be-one';
const ways = [
  '/v1/whoami',
  '/v1/summary',
  '/v1/doubts?limit=100',
  '/v1/doubts?tool=refund',
  '/v1/doubts/groups',
  '/v1/stats?range=7d',
  '/v1/stats?range=24h',
  '/v1/jobs?days=14',
  '/v1/outbox',
  '/v1/outbox?state=dead',
  '/v1/search?q=nothing-has-this',
  '/v1/search?q=abcdefgh',
  '/v1/search?q=refund/-/',
  '/v1/records?limit=50',
  '/v1/records?status=unknown',
  '/v1/records?tool=refund&limit=50',
];

/** By row id over a range that the statement is given: its caller bounds it, and the test of `newest` its rows. */
const isRangeOfRows = (detail: string) => /USING INTEGER PRIMARY KEY \(rowid[<>]/.test(detail);

test('no view of the dashboard reads all records, on SQLite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'semel-plans-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'ledger.db');
  await fillNow(path);
  const server = await startServer({
    store: sqliteStore({ path }),
    policies: { version: 1 },
    mayDefine: false,
    tokens: [{ name: 'operator', role: 'admin', namespace: '*', sha256: digestToken(token) }],
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  onTestFinished(() => server.close(0));
  const semel = createSemel({ store: sqliteStore({ path }), namespace: 'shop', prune: false });
  onTestFinished(() => semel.close());
  const [doubt] = (await semel.doubts.list()).items;

  const executed = new Map<string, string>();
  let way = '';
  for (const method of ['all', 'get'] as const) {
    const original = StatementSync.prototype[method] as (...values: unknown[]) => unknown;
    const spy = vi.spyOn(StatementSync.prototype, method).mockImplementation(function (
      this: StatementSync,
      ...values: unknown[]
    ) {
      executed.set(this.sourceSQL, way);
      return original.apply(this, values) as never;
    });
    onTestFinished(() => spy.mockRestore());
  }
  for (const each of [...ways, `/v1/record?ref=${encodeURIComponent(doubt!.key)}`]) {
    way = each;
    const headers = { authorization: `Bearer ${token}`, 'semel-namespace': 'shop' };
    const response = await fetch(`${server.url}${each}`, { headers });
    expect([each, response.status]).toEqual([each, 200]);
  }
  const ours = [...executed].filter(([sql]) => /\brecords\b/.test(sql) && /^\s*SELECT/i.test(sql));
  // The lists, both ways of the newest rows, and a record by its key.
  expect(ours.length).toBeGreaterThan(4);
  const database = new DatabaseSync(path, { readOnly: true });
  onTestFinished(() => database.close());
  const scans: string[] = [];
  for (const [sql, where] of ours) {
    const plan = database
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...new Array(sql.split('?').length - 1).fill(null));
    for (const { detail } of plan as { detail: string }[]) {
      const isScan = /^SCAN records/.test(detail);
      // The open ones are few, and have an index of their own; the newest are read backwards until their limit.
      const isBounded =
        /USING (COVERING )?INDEX open_records/.test(detail) || /ORDER BY id DESC LIMIT/.test(sql);
      if (isScan && !isBounded && !isRangeOfRows(detail)) scans.push(`${where}: ${detail}: ${sql}`);
    }
  }
  expect(scans).toEqual([]);
});
