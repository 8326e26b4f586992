// A row as the schema's columns, and back.

import { dueAt } from '../../store/due.ts';
import { type Columns, columnsOf, rowOf } from '../../store/row-columns.ts';
import type { Row } from '../../store/store.ts';

/** A result no longer than this lies in the record's own row, which must not outgrow its page. */
const shortResult = 64;

export interface Item {
  readonly fence: number;
  readonly created: number;
  readonly due: number | null;
  readonly expires: number | null;
  readonly settled: number | null;
  readonly status: number;
  readonly flags: number;
  readonly token: string | null;
  readonly version: string;
  readonly owner: string;
  readonly args: string | null;
  readonly content: string | null;
  readonly result: string | null;
  readonly asker: string | null;
  readonly more: string | null;
  /** The result, where it is kept apart. */
  readonly long: string | null;
  /** What was kept apart before goes. */
  readonly shorter: boolean;
}

export function itemOf(row: Row, before: Row | undefined): Item {
  const [status, flags, fence, token, version, owner, created, settled, , args, content, text, asker, more] =
    columnsOf(row);
  const long = isLong(text) ? text : null;
  return {
    fence,
    created,
    due: dueAt(row),
    expires: row.expiresAt,
    settled,
    status,
    flags,
    token,
    version,
    owner,
    args,
    content,
    result: long === null ? text : null,
    asker,
    more,
    long,
    shorter: long === null && isLong(before?.result?.text ?? null),
  };
}

/** As the server selects them: see `columns`. */
export type Selected = [
  revision: number,
  status: number,
  flags: number,
  fence: number,
  token: string | null,
  version: string,
  owner: string,
  created: number,
  settled: number | null,
  expires: number | null,
  args: string | null,
  content: string | null,
  result: string | null,
  asker: string | null,
  more: string | null,
];

/** Of `records r LEFT JOIN results l`. */
export const columns: string = `r.revision, r.status, r.flags, r.fence, r.token, r.version, r.owner, r.created,
  r.settled, r.expires, r.args, r.content, coalesce(r.result, l.result), r.asker, r.more`;

export function decode(namespace: string, key: string, [, ...values]: Selected): Row {
  const copy = [...values] as unknown as Columns;
  const expires = copy[8];
  if (expires !== null) copy[8] = expires - copy[6];
  return rowOf(namespace, key, copy);
}

function isLong(text: string | null): boolean {
  return text !== null && text.length > shortResult;
}
