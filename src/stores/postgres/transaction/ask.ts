// A statement of semel's own through the caller's client.

import { listCauses } from '../../../core/contract/classify.ts';
import { readSqlState } from '../failure.ts';
import type { CallerTransaction } from './client.ts';

export type Row = Record<string, unknown>;

/** Errors of semel's own statements, as opposed to those of the effect. */
const fromLedger = new WeakSet<object>();

export async function ask(
  inner: CallerTransaction,
  text: string,
  values: readonly (string | null)[] = [],
  name?: string,
): Promise<Row | undefined> {
  try {
    const [row] = await inner.query(text, values, name);
    return row;
  } catch (error) {
    const thrown = findDriverError(error);
    if (typeof thrown === 'object' && thrown !== null) fromLedger.add(thrown);
    throw thrown;
  }
}

export function isFromLedger(error: unknown): boolean {
  return fromLedger.has(error as object);
}

/** Drizzle and Prisma wrap the driver's error, which has the SQLSTATE. */
function findDriverError(error: unknown): unknown {
  return listCauses(error).find((each) => readSqlState(each) !== undefined) ?? error;
}
