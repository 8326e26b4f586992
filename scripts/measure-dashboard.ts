// npm run measure:dashboard [-- rows]: fills a SQLite ledger (default: 1,000,000 records) and prints how long the first request of
// each page of the dashboard takes, and that of a filter change. For docs/internals/measurements.md; no test asserts a time.

import crypto from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { emptyRow } from '../src/rules/record.ts';
import { digestToken, startServer } from '../src/server/index.ts';
import type { RawRecord } from '../src/store/move/raw.ts';
import type { Row } from '../src/store/store.ts';
import { sqliteStore } from '../src/stores/sqlite/index.ts';

const rows = Number(process.argv[2] ?? '1000000');
const tools = 40;
const doubts = 600;
const running = 50;
const jobs = 10;
const rounds = 40;
const atOnce = 2_000;

const folder = mkdtempSync(join(tmpdir(), 'semel-measure-'));
const path = join(folder, 'ledger.db');
const token = 'token-of-the-measurement-which-is-long-enough';
const dayMs = 86_400_000;
const now = Date.now();

function digestOf(n: number): string {
  return crypto.hash('sha256', String(n)).slice(0, 32);
}

/** Oldest first, over 90 days; the last are in doubt or running, as those of a real ledger are. */
function record(n: number): RawRecord {
  const isDoubt = rows - n <= doubts;
  const isRunning = !isDoubt && rows - n <= doubts + running;
  const at = now - Math.floor(((rows - n) / rows) * 90 * dayMs) - 60_000;
  const isSlot = n % 10_000 < jobs;
  const day = new Date(at).toISOString().slice(0, 10);
  const tool = isSlot ? `run.job${n % 10_000}` : `tool${n % tools}`;
  const key = isSlot ? `${tool}/${day}T00:00Z/${digestOf(n)}` : `${tool}/-/${digestOf(n)}`;
  const args = isSlot
    ? { job: tool.slice(4), per: 'day', slot: day }
    : { order: `o-${n}`, amount: '19.90', reason: 'the parcel arrived broken', address: digestOf(n) };
  const row: Row = {
    ...emptyRow,
    ...{ namespace: 'shop', key, generation: 1, fence: 1, providerKeyFence: 1, attempts: 1 },
    ...{ version: '1', effect: 'irreversible', owner: 'web1:42', args: JSON.stringify(args) },
    ...{ createdAt: at, updatedAt: at + 40, firstDispatchedAt: at + 1, lastDispatchedAt: at + 1 },
    ...{ conversation: `c-${n % 5_000}`, toolCallId: `call_${n}`, token: `t${n}` },
    status: isDoubt ? 'unknown' : isRunning ? 'running' : 'succeeded',
    doubtFence: isDoubt ? 1 : null,
    dispatched: isRunning,
    result: isDoubt || isRunning ? null : { text: `{"id":"re_${n}"}`, omitted: null, remoteRef: `re_${n}` },
    error: isDoubt ? { code: 'FAILED', message: `socket hang up ${n % 3}`, retriable: false } : null,
    settledAt: isRunning ? null : at + 40,
    expiresAt: isDoubt || isRunning ? null : at + 400 * dayMs,
  };
  const replay = { at: at + 100, namespace: 'shop', key, generation: 1, fence: 1 };
  const events =
    n % 20 === 0 ? [{ ...replay, type: 'replayed' as const, detail: { times: 1, turn: 't-2' } }] : [];
  return { row, leaseLeftMs: isRunning ? dayMs : null, events };
}

async function fill(): Promise<void> {
  const store = sqliteStore({ path });
  await store.open();
  const raw = store.raw;
  if (raw === undefined) throw new Error('A SQLite ledger can be moved.');
  await raw.fill('measured');
  for (let from = 0; from < rows; from += atOnce)
    await raw.write('measured', {
      put: Array.from({ length: Math.min(atOnce, rows - from) }, (_, n) => record(from + n)),
      floor: 1,
    });
  await raw.finish('measured');
  await store.close();
}

const seconds = (since: number) => `${((performance.now() - since) / 1_000).toFixed(0)} s`;

try {
  const startedAt = performance.now();
  await fill();
  console.log(`${rows.toLocaleString('en')} records in ${seconds(startedAt)}`);
  const server = await startServer({
    store: sqliteStore({ path }),
    policies: { version: 1 },
    mayDefine: false,
    tokens: [{ name: 'operator', role: 'admin', namespace: '*', sha256: digestToken(token) }],
    version: '0.0.0',
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  const ask = async (way: string) => {
    const at = performance.now();
    const headers = { authorization: `Bearer ${token}`, 'semel-namespace': 'shop' };
    const response = await fetch(`${server.url}${way}`, { headers });
    const text = await response.text();
    if (!response.ok) throw new Error(`${way}: ${text.slice(0, 300)}`);
    return performance.now() - at;
  };
  const old = Math.floor(rows / 10) * 2 + 11;
  const key = encodeURIComponent((record(old).row as Row).key);
  const ways: readonly (readonly [string, (n: number) => string])[] = [
    ['every page: whoami', () => '/v1/whoami'],
    ['every page: summary', () => '/v1/summary'],
    ['In doubt', () => '/v1/doubts/groups'],
    ['In doubt, its records', () => '/v1/doubts?limit=100'],
    ['In doubt, of another tool', (n) => `/v1/doubts?limit=100&tool=tool${n % tools}`],
    ['Record, by key', () => `/v1/record?ref=${key}`],
    ['Overview', () => '/v1/stats?range=7d'],
    ['Overview, another range', (n) => `/v1/stats?range=${['24h', '30d', '7d'][n % 3]}`],
    ['Jobs', () => '/v1/jobs?days=14'],
    ['Outbox', () => '/v1/outbox'],
    ['Outbox, another state', () => '/v1/outbox?state=dead'],
    ['Search, a key', () => `/v1/search?q=${key}`],
    ['Search, an old digest', () => `/v1/search?q=${digestOf(old)}`],
    ['Search, a text of no record: the first part', () => '/v1/search?q=nothing-has-this'],
  ];
  for (const [name, way] of ways) {
    const times: number[] = [];
    for (let n = 0; n < rounds; n += 1) times.push(await ask(way(n)));
    times.sort((a, b) => a - b);
    const at = (share: number) => (times[Math.ceil(share * rounds) - 1] ?? 0).toFixed(0).padStart(5);
    console.log(`${name.padEnd(46)} p50 ${at(0.5)} ms  p95 ${at(0.95)} ms`);
  }
  await server.close(0);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
