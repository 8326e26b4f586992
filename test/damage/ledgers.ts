// The ledgers that a campaign damages: a small and a large one, each as a killed process leaves it, with its log, and as a
// process that closed it does. With the same files as they were somewhat earlier.

import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite/index.ts';
import { take } from '../../src/testing/store-contract/attempt.ts';

export const sides = ['', '-wal', '-shm', '.id'] as const;

/** A call, and what it must be answered. */
export interface Call {
  readonly namespace: string;
  readonly key: string;
  /** Null: it runs, or is in doubt. */
  readonly value: string | null;
}

export interface Sample {
  readonly name: string;
  readonly isLarge: boolean;
  /** The ledger's path; its other files lie beside it. */
  readonly now: string;
  readonly older: string;
  readonly calls: readonly Call[];
}

export async function samplesIn(folder: string): Promise<readonly Sample[]> {
  return [
    await sampleIn(join(folder, 'small-killed'), 120, false),
    await sampleIn(join(folder, 'small-closed'), 120, true),
    await sampleIn(join(folder, 'large-killed'), 900, false),
    await sampleIn(join(folder, 'large-closed'), 900, true),
  ];
}

async function sampleIn(folder: string, count: number, isClosed: boolean): Promise<Sample> {
  const at = (name: string) => {
    mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
    return join(folder, name, 'ledger.db');
  };
  const [path, now, older] = [at('made'), at('now'), at('older')];
  const store = sqliteStore({ path });
  const calls: Call[] = [];
  const early = Math.floor(count * 0.7);
  const usual = count === 900 ? 1_500 : 60;
  await fill(store, calls, 0, early, usual);
  copyFiles(path, older);
  await fill(store, calls, early, count, usual);
  if (isClosed) await store.close();
  copyFiles(path, now);
  if (!isClosed) await store.close();
  return {
    name: `${count} records, ${isClosed ? 'closed' : 'killed'}`,
    isLarge: count === 900,
    now,
    older,
    calls,
  };
}

/** Closing a copied file drops the locks of this process, which is alone with the ledger. */
export function copyFiles(from: string, to: string): void {
  for (const side of sides) if (existsSync(from + side)) copyFileSync(from + side, to + side);
}

const hourMs = 3_600_000;

async function fill(
  store: SqliteStore,
  calls: Call[],
  from: number,
  to: number,
  usual: number,
): Promise<void> {
  for (let nth = from; nth < to; nth += 1) {
    const namespace = nth % 7 === 0 ? 'other' : 'shop';
    const key = `${['mail.send', 'card.refund', 'site.publish'][nth % 3]}/2026-06-${10 + (nth % 20)}/${digest(nth)}`;
    const attempt = await take(store, { namespace, key, leaseMs: hourMs, crossing: true });
    if (nth % 20 === 19) {
      calls.push({ namespace, key, value: null });
      continue;
    }
    const length = nth % 40 === 7 ? 9_000 : nth % 9 === 4 ? 1_800 : usual;
    const value = JSON.stringify(
      `${nth} ${digest(nth * 31).repeat(Math.ceil(length / 26))}`.slice(0, length),
    );
    await attempt.succeed(value);
    calls.push({ namespace, key, value });
  }
}

/** Spread like a hash, and repeatable. */
function digest(n: number): string {
  let state = (n * 2_654_435_761 + 12_345) >>> 0;
  return Array.from({ length: 26 }, () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 374_761_393) >>> 0;
    return '0123456789abcdefghijklmnopqrstuv'[state >>> 27];
  }).join('');
}
