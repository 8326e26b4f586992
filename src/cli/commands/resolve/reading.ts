// Holds an export against what is in doubt. A record that one row tells of has landed; of all others nothing is said.
// Reads the whole file before anything is settled, so that a broken one settles nothing.

import { shellWord } from '../../../core/visible.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import { valueAt } from '../../args/path.ts';
import { usageError } from '../../usage.ts';
import { faceOfRow, facesOf, type Pair, textOf } from './match.ts';
import type { Row } from './rows.ts';

/** All that is kept of a record in doubt while the file is read. */
export interface Candidate {
  readonly namespace: string;
  readonly key: string;
  readonly ref: string;
  readonly contract: string;
  /** How many rows tell of it. */
  rows: number;
  /** Of the first of them. */
  readonly lines: number[];
  result: unknown;
  remoteRef: string | undefined;
  /** A row that tells of it tells of another record too. */
  isShared: boolean;
}

export interface Terms {
  readonly pairs: readonly Pair[];
  /** Only rows that say so. */
  readonly where: readonly (readonly [column: string, value: string])[];
  readonly resultField: string | undefined;
  readonly refField: string | undefined;
}

export interface Reading {
  readonly candidates: readonly Candidate[];
  readonly rows: number;
  /** A column of the rows that were found tells how it ended, and nobody said which ending counts. */
  readonly warning: string | undefined;
}

/** Enough to look at: a file may have any number of them. */
const mostLines = 5;

export async function readingOf(
  records: AsyncIterable<RecordInfo>,
  rows: AsyncIterable<Row>,
  terms: Terms,
): Promise<Reading> {
  const byFace = new Map<string, Candidate[]>();
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
    for (const face of facesOf(record, terms.pairs)) {
      const same = byFace.get(face);
      if (same === undefined) byFace.set(face, [candidate]);
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
    const face = faceOfRow(values, terms.pairs);
    const meant = face === undefined ? undefined : byFace.get(face);
    if (meant === undefined) continue;
    noteEnding(endings, values);
    for (const candidate of meant) {
      candidate.rows += 1;
      if (candidate.lines.length < mostLines) candidate.lines.push(line);
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

/** A name that no row has is a slip of the pen, and would leave everything open without a word. */
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
  return `the rows that were found have a field ${name} (${[...said].join(', ')}). A row counts as landed whatever it says; to take only some: --where ${shellWord(name)}=${shellWord(example)}`;
}
