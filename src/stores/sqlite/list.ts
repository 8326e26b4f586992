// Pages of records in the order of their keys: contract by contract, from where the page before ended.

import { isInDoubt, type Time } from '../../rules/state.ts';
import { isOpen, statusCode } from '../../store/columns.ts';
import { isDamaged } from '../../store/damage.ts';
import type { DamagedRecord, ListQuery, Row } from '../../store/store.ts';
import { afterAll, type Range, type Records } from './rows.ts';
import { type Scopes, split } from './scopes.ts';

export interface RowPage {
  readonly rows: readonly Row[];
  readonly next: string | undefined;
  /** Between them. */
  readonly damaged: readonly DamagedRecord[];
}

/** Read at once where only some of the rows may match. */
const chunk = 200;

export function listRows(records: Records, scopes: Scopes, query: ListQuery, time: Time): RowPage {
  const found: Row[] = [];
  const damaged: DamagedRecord[] = [];
  // One more than asked for tells whether there is a next page.
  const wanted = query.limit + 1;
  const { inDoubt } = query;
  const filter = {
    openOnly: inDoubt === true || (query.status !== undefined && isOpen(query.status)),
    status: query.status === undefined ? null : statusCode(query.status),
    conversation: query.conversation ?? null,
    limit: inDoubt === undefined ? wanted : Math.max(wanted, chunk),
  };

  for (const range of ranges(scopes, query)) {
    for (let { from } = range; ; ) {
      const rows = records.list({ ...range, from }, filter);
      for (const row of rows) {
        if (isDamaged(row)) damaged.push(row);
        else if (inDoubt === undefined || isInDoubt(row, time) === inDoubt) found.push(row);
        if (found.length < wanted) continue;
        const next = found[query.limit - 1] as Row;
        // What lies behind it comes with the next page.
        const until = damaged.filter(({ key }) => key <= next.key);
        return { rows: found.slice(0, query.limit), next: next.key, damaged: until };
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < filter.limit) break;
      from = `${split(last.key)[1]}\0`;
    }
  }
  return { rows: found, next: undefined, damaged };
}

/** The parts of the ledger that the query can match, in order. */
function* ranges(
  scopes: Scopes,
  { namespace, contract, prefix = '', after = '' }: ListQuery,
): Iterable<Range> {
  const [afterContract, afterRest] = split(after);
  const [prefixContract, prefixRest] = split(prefix);
  for (const scope of scopes.from(namespace, afterContract)) {
    if (contract !== undefined && scope.contract !== `${contract}/`) continue;
    // A prefix without a slash is the start of a contract; of a key without one, it is the start of the key.
    const isWhole = prefixContract === '' && scope.contract !== '';
    if (isWhole ? !scope.contract.startsWith(prefixRest) : scope.contract !== prefixContract) continue;
    const start = isWhole ? '' : prefixRest;
    const resume = after !== '' && scope.contract === afterContract ? `${afterRest}\0` : '';
    yield { scope, from: start > resume ? start : resume, before: afterAll(start) };
  }
}
