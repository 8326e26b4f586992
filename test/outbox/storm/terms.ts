// What all processes of an outbox storm agree on: contracts, intents, groups, and the table of the caller's own data.

import type pg from 'pg';
import type { Semel } from '../../../src/index.ts';
import { type LineName, lineOf } from '../../crash/lines.ts';
import { type Terms, toolOf, type World } from '../../crash/tools.ts';

export const namespace = 'outbox-storm';

/** Targets with and without a key, with and without somebody to ask, and one that may be repeated. */
export const contracts = [
  'plain',
  'keyed',
  'irreversible',
  'verified',
  'explicit',
  'irreversible-keyed',
  'prepared-keyed',
  'write-idempotent',
] as const satisfies readonly LineName[];
export type ContractName = (typeof contracts)[number];

/**
 * Its records are gone before long, and each of its intents is staged by one process in one transaction: if it ever lands
 * twice, a row has outlived its record.
 */
export const forgetful: ContractName = 'irreversible';

export const longestLeaseMs = 500;
const common: Partial<Terms> = { lease: 400, timeout: 2_000, verifyAfter: 4_000 };
const brief: Partial<Terms> = { window: '1s', failureWindow: '1s', per: 'run' };

/** Shorter than a relay's own hold, so that a row whose relay died is lent again soon. */
export const holdMs = 700;
/** After so long no request can be on its way. */
export const quietMs = 7_000;

export function makeTools(semel: Semel, url: string, at: World['at']) {
  return new Map(
    contracts.map((name) => [
      name as string,
      toolOf(semel, name, { url, at, terms: { ...common, ...(name === forgetful ? brief : {}) } }),
    ]),
  );
}

export const isKeyed = (contract: string): boolean => lineOf(contract as LineName).keyed === true;
export const mayRepeat = (contract: string): boolean => contract === 'write-idempotent';
export const contractOf = (intent: string): string => intent.split(' ')[0] as string;

/** Some intents have an order. */
export function groupOf(nth: number): string | null {
  return nth % 4 === 0 ? `group ${(nth / 4) % 5}` : null;
}

/**
 * The caller's own rows: what is here was committed, and nothing else. `seq` is drawn while the lock of a strict group is held,
 * so within a group it is the order of the commits.
 */
export async function createTables(pool: pg.Pool): Promise<void> {
  await pool.query(
    `CREATE TABLE orders (seq bigserial, intent text PRIMARY KEY, group_name text, not_before bigint)`,
  );
}
