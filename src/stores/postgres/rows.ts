// A row as the schema's columns, and back.

import { type Columns, columnsOf, rowOf } from '../../store/columns.ts';
import type { Row } from '../../store/store.ts';

export interface Item {
  readonly fence: number;
  readonly created: number;
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
}

export function itemOf(row: Row): Item {
  const [
    status,
    flags,
    fence,
    token,
    version,
    owner,
    created,
    settled,
    ,
    args,
    content,
    result,
    asker,
    more,
  ] = columnsOf(row);
  return {
    fence,
    created,
    expires: row.expiresAt,
    settled,
    status,
    flags,
    token,
    version,
    owner,
    args,
    content,
    result,
    asker,
    more,
  };
}

/** As the server selects them: see `columns`. */
export type Selected = [revision: number, ...Columns];

/** Of a record `r`. */
export const columns: string = `r.revision, r.status, r.flags, r.fence, r.token, r.version, r.owner, r.created,
  r.settled, r.expires, r.args, r.content, r.result, r.asker, r.more`;

/** One that semel did not write is told as an error of Postgres would be: it concerns nobody but who asks for it. */
export function decode(namespace: string, key: string, [, ...values]: Selected): Row {
  const copy = [...values] as unknown as Columns;
  const expires = copy[8];
  if (expires !== null) copy[8] = expires - copy[6];
  try {
    return rowOf(namespace, key, copy);
  } catch (cause) {
    const what = `record ${JSON.stringify(key)} in ${JSON.stringify(namespace)} cannot be read`;
    throw Object.assign(new Error(what, { cause }), { code: 'SM007' });
  }
}
