// Looks for damage in all that the ledger keeps: what SQLite can see, what does not fit together, and every checksum.

import { inSnapshot, query, type SqliteLike, single } from './client.ts';
import { damagedLedger } from './failure.ts';
import { keySum } from './rows.ts';
import { openRows } from './schema.ts';
import type { Session } from './transaction/session.ts';

/** More of a kind are not told one by one. */
const most = 20;
const pageSize = 500;
/** Whether a record is in doubt is not asked. */
const anyTime = { wall: 0, mono: 0, boot: '', steady: false };

type Content = Pick<Session, 'database' | 'lists' | 'scopes'>;

export function damageIn(content: Content): readonly string[] {
  return inSnapshot(content.database, () => damageNow(content));
}

function damageNow({ database, lists, scopes }: Content): readonly string[] {
  const problems = query(database, `PRAGMA integrity_check(${most})`)
    .all()
    .map(([line]) => String(line))
    .filter((line) => line !== 'ok');
  problems.push(...wrongSum(database, 'all'), ...wrongSum(database, 'open'));
  const wrong: string[] = [];
  try {
    scopes.verify();
    wrong.push(...wrongKeys(database));
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
  const left = wrong.length - most;
  return [...problems, ...wrong.slice(0, most), ...(left > 0 ? [`${left} more records are damaged.`] : [])];
}

/** A small ledger is looked through whenever it is opened; a large one by `semel store check` and `semel doctor`. */
const smallBytes = 1024 * 1024;

export function refuseDamaged(database: SqliteLike): void {
  inSnapshot(database, () => refuseDamagedNow(database));
}

function refuseDamagedNow(database: SqliteLike): void {
  const [wrong] = wrongSum(database, 'open');
  if (wrong !== undefined) throw damagedLedger(wrong);
  const pages = single(database, 'PRAGMA page_count') as number;
  if (pages * (single(database, 'PRAGMA page_size') as number) > smallBytes) return;
  const found = single(database, 'PRAGMA integrity_check(1)');
  const [problem] = found === 'ok' ? wrongSum(database, 'all') : [String(found)];
  if (problem !== undefined) throw damagedLedger(problem);
}

/** Few are open at a time: these are looked at whenever a ledger is opened, however large it is. */
function wrongSum(database: SqliteLike, which: 'all' | 'open'): string[] {
  const rows = which === 'all' ? 'records NOT INDEXED' : `records INDEXED BY open_records WHERE ${openRows}`;
  const isRight = single(
    database,
    `SELECT ${which}_sum = (SELECT ifnull(sum(sum), 0) & ${0xffffffff} FROM ${rows}) FROM meta`,
  );
  const name = which === 'all' ? 'a record' : 'an open record';
  return isRight === 0 ? [`${name} is missing, or one is there that should not be`] : [];
}

function wrongKeys(database: SqliteLike): string[] {
  return query(database, 'SELECT scope, key, key_sum FROM records INDEXED BY record_keys')
    .all()
    .filter(([scope, key, sum]) => sum !== keySum(scope as number, key as string))
    .map(([, key]) => `The key …/${key} is not the one that was written.`);
}
