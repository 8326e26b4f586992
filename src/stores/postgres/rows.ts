// Encodes a row as the schema's columns and decodes it. Refuses a record whose checksum does not match.

import { checksum } from '../../store/checksum.ts';
import { type Columns, fromColumns, toColumns } from '../../store/columns.ts';
import { damagedRecord } from '../../store/damage.ts';
import type { Found } from '../../store/remote/backend.ts';
import type { Row } from '../../store/store.ts';

/** A row's values by column, without namespace and key. */
export function encode(row: Row) {
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
    // Bytes take half the space of hex digits.
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

/** A record as it is selected. Every value costs the driver time, so all numbers are one text. */
export type Packed = readonly [
  head: string,
  key: string,
  namespace: string | null,
  ...texts: (string | null)[],
];

/** The columns of a record `r`, as SQL. The namespace is null if it is the usual one. */
export const packed = (usual = 'NULL'): string =>
  `pg_catalog.concat(${numbers.map((name) => `r.${name}`).join(", ',', ")}), r.key, nullif(r.namespace, ${usual}), pg_catalog.encode(r.token, 'hex'), ${texts.map((name) => `r.${name}`).join(', ')}`;

/** The same columns as the return type of a function. */
export const packedColumns: string = ['head', 'key', 'namespace', 'token', ...texts]
  .map((name) => `${name} text`)
  .join(', ');

export function decodeFound(values: Packed, usual?: string): Found {
  return { row: decode(values, usual), revision: Number.parseInt(values[0], 10) };
}

/** Throws if this record is not what semel wrote. */
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
