// Whether a record matches a query, for stores that scan their records.

import { contractOf, isInDoubt, type Time } from '../rules/state.ts';
import type { ListQuery, Row } from './store.ts';

export function matches(row: Row, query: ListQuery, time: Time): boolean {
  return (
    row.namespace === query.namespace &&
    (query.contract === undefined || contractOf(row.key) === query.contract) &&
    (query.prefix === undefined || row.key.startsWith(query.prefix)) &&
    (query.status === undefined || row.status === query.status) &&
    (query.inDoubt === undefined || isInDoubt(row, time) === query.inDoubt) &&
    (query.conversation === undefined || row.conversation === query.conversation) &&
    (query.after === undefined || row.key > query.after)
  );
}
