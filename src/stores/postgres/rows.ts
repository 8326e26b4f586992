// A row as the schema's columns, and back.

import { columnsOf, rowOf } from '../../store/columns.ts';
import { damagedRecord } from '../../store/damage.ts';
import type { Found } from '../../store/remote/backend.ts';
import type { Row } from '../../store/store.ts';
import { refuseAbsurd } from './absurd.ts';

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

const numbers = ['revision', 'status', 'flags', 'fence', 'created', 'settled', 'expires'];
const texts = ['token', 'version', 'owner', 'args', 'content', 'result', 'asker', 'more'];

/** A record as it is selected: every value costs the driver time, so the numbers are one text. */
export type Packed = readonly [
  head: string,
  key: string,
  namespace: string | null,
  ...texts: (string | null)[],
];

/** Of a record `r`. No namespace: the usual one. */
export const packed = (usual = 'NULL'): string =>
  `concat(${numbers.map((name) => `r.${name}`).join(", ',', ")}), r.key, nullif(r.namespace, ${usual}), ${texts.map((name) => `r.${name}`).join(', ')}`;

/** As a function returns them. */
export const packedColumns: string = ['head', 'key', 'namespace', ...texts]
  .map((name) => `${name} text`)
  .join(', ');

export function foundIn(values: Packed, usual?: string): Found {
  return { row: decode(values, usual), revision: Number.parseInt(values[0], 10) };
}

/** Throws the damage of this one record: it concerns nobody but who asks for it. */
export function decode(values: Packed, usual?: string): Row {
  const [head, key, other, token, version, owner, args, content, result, asker, more] = values;
  const namespace = other ?? (usual as string);
  const [, status, flags, fence, created, settled, expires] = head.split(',');
  const createdAt = Number(created);
  try {
    const row = rowOf(namespace, key, [
      Number(status),
      Number(flags),
      Number(fence),
      token as string | null,
      version as string,
      owner as string,
      createdAt,
      settled === '' ? null : Number(settled),
      expires === '' ? null : Number(expires) - createdAt,
      args as string | null,
      content as string | null,
      result as string | null,
      asker as string | null,
      more as string | null,
    ]);
    refuseAbsurd(row);
    return row;
  } catch (error) {
    throw damagedRecord(namespace, key, error instanceof Error ? error.message : String(error));
  }
}
