// Looks for damage in all that the ledger keeps: what SQLite can see, what does not fit together, and every checksum.

import { inSnapshot, query, type SqliteLike, single } from './driver.ts';
import { damagedLedger } from './failure.ts';
import { listRows } from './list.ts';
import { nameSum } from './rows.ts';
import type { Session } from './session.ts';

/** More of a kind are not told one by one. */
const most = 20;
const pageSize = 500;
/** Whether a record is in doubt is not asked. */
const anyTime = { wall: 0, mono: 0, boot: '', steady: false };

type Content = Pick<Session, 'database' | 'records' | 'scopes'>;

export function damageIn(content: Content): readonly string[] {
  return inSnapshot(content.database, () => damageNow(content));
}

function damageNow({ database, records, scopes }: Content): readonly string[] {
  const problems = query(database, `PRAGMA integrity_check(${most})`)
    .all()
    .map(([line]) => String(line))
    .filter((line) => line !== 'ok');
  problems.push(...mismatches(database), ...wrongOpenSum(database));
  const wrong: string[] = [];
  try {
    scopes.verify();
    wrong.push(...wrongKeys(database));
    for (const namespace of scopes.namespaces()) {
      for (let after: string | undefined; ; ) {
        const about = { namespace, limit: pageSize, ...(after === undefined ? {} : { after }) };
        const page = listRows(records, scopes, about, anyTime);
        for (const { key, problem } of page.damaged)
          wrong.push(`The record ${key} of ${namespace}: ${problem}.`);
        if (page.next === undefined) break;
        after = page.next;
      }
    }
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  const left = wrong.length - most;
  return [...problems, ...wrong.slice(0, most), ...(left > 0 ? [`${left} more records are damaged.`] : [])];
}

/** A small ledger is looked through whenever it is opened; a large one by `semel store check` and `semel doctor`. */
const smallBytes = 1024 * 1024;

export function refuseDamaged(database: SqliteLike): void {
  inSnapshot(database, () => refuseDamagedNow(database));
}

function refuseDamagedNow(database: SqliteLike): void {
  const [wrong] = wrongOpenSum(database);
  if (wrong !== undefined) throw damagedLedger(wrong);
  const pages = single(database, 'PRAGMA page_count') as number;
  if (pages * (single(database, 'PRAGMA page_size') as number) > smallBytes) return;
  const found = single(database, 'PRAGMA quick_check(1)');
  const [problem] = found === 'ok' ? mismatches(database) : [String(found)];
  if (problem !== undefined) throw damagedLedger(problem);
}

/** Few are open at a time: these are looked at whenever a ledger is opened, however large it is. */
function wrongOpenSum(database: SqliteLike): string[] {
  const isRight = single(
    database,
    `SELECT open_sum = (SELECT ifnull(sum(sum), 0) & ${0xffffffff} FROM open) FROM meta`,
  );
  return isRight === 0 ? ['an open record is missing, or one is there that should not be'] : [];
}

/** Each closed record has one key, and each key one record; nothing is open and closed at once. */
function mismatches(database: SqliteLike): string[] {
  const count = (sql: string) => single(database, `SELECT count(*) FROM ${sql}`) as number;
  const found: [number, string][] = [
    [count('keys LEFT JOIN closed USING (id) WHERE closed.id IS NULL'), 'keys have no record'],
    [count('closed') - count('(SELECT DISTINCT id FROM keys)'), 'records have no key'],
    [count('keys JOIN open USING (scope, key)'), 'records are open and closed at once'],
  ];
  return found.filter(([wrong]) => wrong !== 0).map(([wrong, what]) => `${wrong} ${what}`);
}

function wrongKeys(database: SqliteLike): string[] {
  return query(database, 'SELECT scope, key, sum FROM keys')
    .all()
    .filter(([scope, key, sum]) => sum !== nameSum(scope as number, key as string))
    .map(([, key]) => `The key …/${key} is not the one that was written.`);
}
