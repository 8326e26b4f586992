// Compares an export with the records in doubt. A record that one row matches has landed; the export says nothing about
// the others. Reads the whole file before anything is settled, so that a broken one settles nothing.

import { shellWord } from '../../../core/visible.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import { valueAt } from '../../args/path.ts';
import { usageError } from '../../usage.ts';
import { type Pair, recordTexts, rowText, textOf } from './match.ts';
import type { Row } from './rows.ts';

/** What is kept of a record in doubt while the file is read. */
export interface Candidate {
  readonly namespace: string;
  readonly key: string;
  readonly ref: string;
  readonly contract: string;
  /** How many rows match it. */
  rows: number;
  /** Line numbers of the first ones. */
  readonly lines: number[];
  result: unknown;
  remoteRef: string | undefined;
  /** A row that matches it matches another record too. */
  isShared: boolean;
}

export interface Terms {
  readonly pairs: readonly Pair[];
  /** Only rows with these values. */
  readonly where: readonly (readonly [column: string, value: string])[];
  readonly resultField: string | undefined;
  readonly refField: string | undefined;
}

export interface Reading {
  readonly candidates: readonly Candidate[];
  readonly rows: number;
  /** The matching rows have a status column, and no --where says which status counts. */
  readonly warning: string | undefined;
}

const maxLines = 5;

export async function readingOf(
  records: AsyncIterable<RecordInfo>,
  rows: AsyncIterable<Row>,
  terms: Terms,
): Promise<Reading> {
  const byText = new Map<string, Candidate[]>();
  const candidates: Candidate[] = [];
  for await (const record of records) {
    const { namespace, key, ref, contract } = record;
    const candidate = {
      namespace,
      key,
      ref,
      contract,
      rows: 0,
      lines: [],
      result: undefined,
      remoteRef: undefined,
      isShared: false,
    };
    candidates.push(candidate);
    for (const text of recordTexts(record, terms.pairs)) {
      const same = byText.get(text);
      if (same === undefined) byText.set(text, [candidate]);
      else same.push(candidate);
    }
  }
  const seen = columnsSeen(terms);
  const endings = new Map<string, Set<string>>();
  let count = 0;
  for await (const { line, values } of rows) {
    count += 1;
    seen.look(values);
    if (!terms.where.every(([column, value]) => textOf(valueAt(values, column)) === value)) continue;
    const text = rowText(values, terms.pairs);
    const meant = text === undefined ? undefined : byText.get(text);
    if (meant === undefined) continue;
    noteEnding(endings, values);
    for (const candidate of meant) {
      candidate.rows += 1;
      if (candidate.lines.length < maxLines) candidate.lines.push(line);
      candidate.isShared ||= meant.length > 1;
      if (candidate.rows > 1) continue;
      candidate.result = terms.resultField === undefined ? values : valueAt(values, terms.resultField);
      candidate.remoteRef =
        terms.refField === undefined ? undefined : textOf(valueAt(values, terms.refField));
    }
  }
  seen.check(count);
  return { candidates, rows: count, warning: terms.where.length > 0 ? undefined : warningOf(endings) };
}

/** A column that no row has is a typo, and would silently leave everything open. */
function columnsSeen({ pairs, where, resultField, refField }: Terms) {
  const asked = [
    ...pairs.map(({ column }) => column),
    ...where.map(([column]) => column),
    resultField,
    refField,
  ];
  const missing = new Set(asked.filter((column) => column !== undefined));
  let example: readonly string[] = [];
  return {
    look(values: Row['values']): void {
      if (missing.size === 0) return;
      if (example.length === 0) example = Object.keys(values);
      for (const column of missing) if (valueAt(values, column) !== undefined) missing.delete(column);
    },
    check(rows: number): void {
      const [column] = missing;
      if (column === undefined || rows === 0) return;
      throw usageError(
        'resolve',
        `no row has a field ${JSON.stringify(column)}`,
        `Nothing was settled. The rows have: ${example.slice(0, 30).join(', ')}.`,
      );
    },
  };
}

const endingNames = /^(status|state|outcome|result|success|succeeded)$/i;

function noteEnding(endings: Map<string, Set<string>>, values: Row['values']): void {
  for (const [name, value] of Object.entries(values)) {
    const text = endingNames.test(name) ? textOf(value) : undefined;
    if (text === undefined) continue;
    const said = endings.get(name) ?? new Set();
    if (said.size < 5) endings.set(name, said.add(text.slice(0, 40)));
  }
}

function warningOf(endings: ReadonlyMap<string, ReadonlySet<string>>): string | undefined {
  const [first] = endings;
  if (first === undefined) return undefined;
  const [name, said] = first;
  const [example = ''] = said;
  return `the rows that were found have a field ${name} (${[...said].join(', ')}). A row counts as landed whatever its value; to use only some: --where ${shellWord(name)}=${shellWord(example)}`;
}
