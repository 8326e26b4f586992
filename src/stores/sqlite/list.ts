// Pages of records in the order of their keys: contract by contract, from where the page before ended.

import { isInDoubt, type Time } from '../../store/rules/state.ts';
import type { ListQuery, Row } from '../../store/store.ts';
import type { SqliteValue } from './driver.ts';
import { statusCode } from './rows.ts';
import { afterAll, type Scope, split, type Tables } from './tables.ts';

export interface RowPage {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
}

/** Read at once where only some of the rows may match. */
const chunk = 200;

export function listRows(tables: Tables, query: ListQuery, time: Time): RowPage {
  const found: Row[] = [];
  // One more than asked for tells whether there is a next page.
  const wanted = query.limit + 1;
  const { inDoubt } = query;
  const filter = {
    openOnly: inDoubt === true || query.status === 'running' || query.status === 'unknown',
    status: query.status === undefined ? null : statusCode(query.status),
    conversation: query.conversation ?? null,
    limit: inDoubt === undefined ? wanted : Math.max(wanted, chunk),
  };

  for (const range of ranges(tables, query)) {
    let { from } = range;
    for (;;) {
      const rows = tables.list(range.scope, from, range.before, filter);
      found.push(...(inDoubt === undefined ? rows : rows.filter((row) => isInDoubt(row, time) === inDoubt)));
      if (found.length >= wanted)
        return { rows: found.slice(0, query.limit), next: found[query.limit - 1]?.key };
      const last = rows.at(-1);
      if (last === undefined || rows.length < filter.limit) break;
      from = `${split(last.key)[1]}\0`;
    }
  }
  return { rows: found, next: undefined };
}

interface Range {
  readonly scope: Scope;
  readonly from: string;
  readonly before: SqliteValue;
}

/** The parts of the ledger that the query can match, in order. */
function ranges(tables: Tables, { namespace, contract, prefix = '', after = '' }: ListQuery): Range[] {
  const [afterContract, afterRest] = split(after);
  const [prefixContract, prefixRest] = split(prefix);
  const scopes = tables.scopesFrom(namespace, afterContract);
  return scopes.flatMap((scope) => {
    if (contract !== undefined && scope.contract !== `${contract}/`) return [];
    // A prefix without a slash is the start of a contract; of a key without one, it is the start of the key.
    const isWhole = prefixContract === '' && scope.contract !== '';
    if (isWhole ? !scope.contract.startsWith(prefixRest) : scope.contract !== prefixContract) return [];
    const start = isWhole ? '' : prefixRest;
    const resume = after !== '' && scope.contract === afterContract ? `${afterRest}\0` : '';
    return [{ scope, from: start > resume ? start : resume, before: afterAll(start) }];
  });
}
