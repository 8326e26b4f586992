// Searches the whole ledger for damage: SQLite's integrity check, the sums in `meta`, and every checksum.

import { inSnapshot, query, type SqliteLike, single } from './client.ts';
import { damagedLedger } from './failure.ts';
import { checksumKey } from './rows.ts';
import { hasForeignTables, openRows, tables } from './schema.ts';
import type { Session } from './transaction/session.ts';

/** Maximum number of damaged records to list one by one. */
const maxListed = 20;
const pageSize = 500;
/** Any time will do: this does not ask whether a record is in doubt. */
const anyTime = { wall: 0, mono: 0, boot: '', steady: false };

type Content = Pick<Session, 'database' | 'lists' | 'scopes'>;

export function findDamage(content: Content): readonly string[] {
  return inSnapshot(content.database, () => findDamageInSnapshot(content));
}

function findDamageInSnapshot({ database, lists, scopes }: Content): readonly string[] {
  const problems = findBrokenTrees(database, maxListed);
  problems.push(...findWrongSum(database, 'all'), ...findWrongSum(database, 'open'));
  const wrong: string[] = [];
  try {
    scopes.verify();
    wrong.push(...findWrongKeys(database));
    for (const namespace of scopes.namespaces()) {
      for (let after: string | undefined; ; ) {
        const about = { namespace, limit: pageSize, ...(after === undefined ? {} : { after }) };
        const page = lists.page(about, anyTime);
        for (const { key, problem } of page.damaged)
          wrong.push(`The record ${key} of ${namespace}: ${problem}.`);
        if (page.next === undefined) break;
        after = page.next;
      }
    }
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  const left = wrong.length - maxListed;
  return [
    ...problems,
    ...wrong.slice(0, maxListed),
    ...(left > 0 ? [`${left} more records are damaged.`] : []),
  ];
}

/** Small ledgers are fully checked at every opening; large ones by `semel store check` and `semel doctor`. */
const smallBytes = 1024 * 1024;

export function refuseDamaged(database: SqliteLike): void {
  inSnapshot(database, () => refuseDamagedSnapshot(database));
}

function refuseDamagedSnapshot(database: SqliteLike): void {
  const [wrong] = findWrongSum(database, 'open');
  if (wrong !== undefined) throw damagedLedger(wrong);
  const pages = single(database, 'PRAGMA page_count') as number;
  if (pages * (single(database, 'PRAGMA page_size') as number) > smallBytes) return;
  const [problem] = [...findBrokenTrees(database, 1), ...findWrongSum(database, 'all')];
  if (problem !== undefined) throw damagedLedger(problem);
}

/** A row of the user's own tables that breaks one of their constraints is not damage of the ledger. */
function findBrokenTrees(database: SqliteLike, limit: number): string[] {
  const check = (what: string | number) =>
    query(database, `PRAGMA integrity_check(${what})`)
      .all()
      .map(([line]) => String(line))
      .filter((line) => line !== 'ok');
  const found = check(limit);
  if (found.length === 0 || !hasForeignTables(database)) return found;
  return tables.flatMap(check).slice(0, limit);
}

/** Open records are few, so they are checked at every opening, whatever the ledger's size. */
function findWrongSum(database: SqliteLike, which: 'all' | 'open'): string[] {
  const rows = which === 'all' ? 'records NOT INDEXED' : `records INDEXED BY open_records WHERE ${openRows}`;
  const isRight = single(
    database,
    `SELECT ${which}_sum = (SELECT ifnull(sum(sum), 0) & ${0xffffffff} FROM ${rows}) FROM meta`,
  );
  const name = which === 'all' ? 'a record' : 'an open record';
  return isRight === 0 ? [`${name} is missing, or one is there that should not be`] : [];
}

function findWrongKeys(database: SqliteLike): string[] {
  return query(database, 'SELECT scope, key, key_sum FROM records INDEXED BY record_keys')
    .all()
    .filter(([scope, key, sum]) => sum !== checksumKey(scope as number, key as string))
    .map(([, key]) => `The key …/${key} is not the one that was written.`);
}
