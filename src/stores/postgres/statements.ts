// The statements that call the SQL functions of exchange-functions.ts, for our own connections, for a user's client, and for
// a caller's transaction.

import { isListType, type ListType, type Value } from './array.ts';
import type { Call } from './exchange.ts';
import { type QuestionName, questions } from './exchange-functions.ts';
import { qualify, schemaVersion } from './schema.ts';

export interface Statement {
  readonly text: string;
  readonly name: string | undefined;
}

/**
 * `own`: our own connections. `client`: the user's, which may have a transaction open and is refused then. `transaction`: the
 * caller's open transaction, on purpose.
 */
export type Sender = 'own' | 'client' | 'transaction';

/** Drivers differ in how they encode arrays, so lists go to others' clients as text; in a transaction all values do. */
export function buildStatements(schema: string, sender: Sender): Record<QuestionName, Statement> {
  const entries = Object.entries(questions).map(([question, { of, parameters }]) => {
    const bindings = parameters.map(([parameter, type], index) => {
      const isText = type === 'json' || sender === 'transaction' || (sender === 'client' && isListType(type));
      return `${parameter} => $${index + 1}::${isText ? 'text::' : ''}${type}`;
    });
    const list = bindings.join(', ');
    return [
      question,
      {
        text: qualify(schema, callOf(sender, of, list, parameters.length + 1)),
        name: nameStatement(question, schema),
      },
    ];
  });
  return Object.fromEntries(entries);
}

function callOf(sender: Sender, of: string, list: string, next: number): string {
  if (sender === 'own') return `SELECT ${of === 'look' ? '* FROM ' : ''}semel.${of}(${list})`;
  if (sender === 'client') return `CALL semel.own_${of}(${list})`;
  // The functions set `lock_timeout` until the end of the transaction: the caller's own is put back. Postgres evaluates a
  // select list from left to right.
  return `SELECT (SELECT pg_catalog.json_agg(e)::text FROM semel.${of}(${list}) AS e) AS answer,
    pg_catalog.set_config('lock_timeout', $${next}::text, true) AS back`;
}

export function encodeValues(
  question: QuestionName,
  values: Parameters<Call>[1],
  encode: (type: ListType, list: readonly Value[]) => unknown,
): readonly unknown[] {
  const { parameters } = questions[question];
  return values.map((value, index) =>
    Array.isArray(value) ? encode(parameters[index]?.[1] as ListType, value) : value,
  );
}

/** The rows that a function returned, from one text: some drivers rename columns or change types. */
export function parseAnswer(row: Record<string, unknown> | undefined): readonly (readonly unknown[])[] {
  return (JSON.parse(row?.answer as string) as (string | object)[]).map((one) =>
    typeof one === 'string' ? [one] : Object.values(one),
  );
}

/** Postgres truncates longer names, and two of them could collide. */
export function nameStatement(question: string, schema: string): string | undefined {
  const name = `semel ${schemaVersion} ${question} ${schema}`;
  return name.length > 63 ? undefined : name;
}
