// A row as the schema's columns, and back.

import { checksum } from '../../store/checksum.ts';
import { type Columns, fromColumns, toColumns } from '../../store/columns.ts';
import { damagedRecord } from '../../store/damage.ts';
import type { Found } from '../../store/remote/backend.ts';
import type { Row } from '../../store/store.ts';

/** The values of a row besides its namespace and key, by column. */
export function itemOf(row: Row) {
  const columns = toColumns(row);
  const [status, flags, fence, token, version, owner, created, settled, expires] = columns;
  const [, , , , , , , , , args, content, result, asker, more] = columns;
  return {
    fence,
    created,
    expires: expires === null ? null : created + expires,
    settled,
    sum: checksum(row.namespace, row.key, columns),
    status,
    flags,
    // Half as long as its digits.
    token: token && `\\x${token}`,
    version,
    owner,
    args,
    content,
    result,
    asker,
    more,
  };
}

const numbers = ['revision', 'status', 'flags', 'fence', 'created', 'settled', 'expires', 'sum'];
const texts = ['version', 'owner', 'args', 'content', 'result', 'asker', 'more'];

/** A record as it is selected: every value costs the driver time, so the numbers are one text. */
export type Packed = readonly [
  head: string,
  key: string,
  namespace: string | null,
  ...texts: (string | null)[],
];

/** Of a record `r`. No namespace: the usual one. */
export const packed = (usual = 'NULL'): string =>
  `pg_catalog.concat(${numbers.map((name) => `r.${name}`).join(", ',', ")}), r.key, nullif(r.namespace, ${usual}), pg_catalog.encode(r.token, 'hex'), ${texts.map((name) => `r.${name}`).join(', ')}`;

/** As a function returns them. */
export const packedColumns: string = ['head', 'key', 'namespace', 'token', ...texts]
  .map((name) => `${name} text`)
  .join(', ');

export function foundIn(values: Packed, usual?: string): Found {
  return { row: decode(values, usual), revision: Number.parseInt(values[0], 10) };
}

/** Throws the damage of this one record: that it is not what semel wrote. */
export function decode(values: Packed, usual?: string): Row {
  const [head, key, other, token, version, owner, args, content, result, asker, more] = values;
  const namespace = other ?? (usual as string);
  const [, status, flags, fence, created, settled, expires, sum] = head.split(',');
  const createdAt = Number(created);
  const columns = [
    Number(status),
    Number(flags),
    Number(fence),
    token,
    version,
    owner,
    createdAt,
    settled === '' ? null : Number(settled),
    expires === '' ? null : Number(expires) - createdAt,
    args,
    content,
    result,
    asker,
    more,
  ] as Columns;
  if (Number(sum) !== checksum(namespace, key, columns))
    throw damagedRecord(namespace, key, 'its checksum does not match');
  return fromColumns(namespace, key, columns);
}
