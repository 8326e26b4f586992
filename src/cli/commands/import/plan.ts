// The first reading of a file: which lines count, and what is wrong with the others. Nothing is written before.

import { isTooDeep } from '../../../core/key/json-shape.ts';
import { findRecordProblem } from '../../../semel/index.ts';
import type { Line } from '../../args/input.ts';
import { entryOf, type Meaning, type PlainFields, unknownEndings, usualFields } from './plain.ts';

export interface Bad {
  readonly line: number;
  readonly because: string;
}

export interface Plan {
  /** From `semel export`, or an action ledger kept by hand. */
  readonly form: 'semel' | 'plain';
  readonly fields: PlainFields;
  /**
   * The line that counts for a key: the last. In an action ledger the first that says done; otherwise the last that leaves
   * it open, unless a later line accounts for that attempt.
   */
  readonly chosen: ReadonlySet<number>;
  readonly lines: number;
  readonly bad: readonly Bad[];
  readonly badCount: number;
  /** Unknown statuses, with their first line. */
  readonly unknown: ReadonlyMap<string, number>;
  /** The namespaces of our own records. */
  readonly namespaces: ReadonlySet<string>;
}

interface PlanOptions {
  readonly meanings: ReadonlyMap<string, Meaning>;
  readonly fields: Partial<PlainFields>;
}

const mostNamed = 100;

export async function planOf(
  batches: AsyncIterable<readonly Line[]>,
  { meanings, fields: given }: PlanOptions,
): Promise<Plan> {
  const byKey = new Map<string, KeyState>();
  const bad: Bad[] = [];
  const unknown = new Map<string, number>();
  const namespaces = new Set<string>();
  let badCount = 0;
  let lines = 0;
  let form: Plan['form'] | undefined;
  let fields: PlainFields = { key: 'key', time: 'ts', status: 'status', ...given };

  function read({ number, text }: Line): void {
    if (text?.trim() === '') return;
    lines += 1;
    const line = parsed(text);
    const problem = typeof line === 'string' ? line : problemWith(number, line);
    if (problem === undefined) return;
    badCount += 1;
    if (bad.length < mostNamed) bad.push({ line: number, because: problem });
  }

  function problemWith(number: number, line: Fields): string | undefined {
    if (form === undefined) {
      form = Object.hasOwn(line, 'semel') ? 'semel' : 'plain';
      fields = { ...fieldsOf(line), ...given };
    }
    return form === 'semel' ? readOwn(number, line) : readPlain(number, line);
  }

  function readOwn(number: number, line: Fields): string | undefined {
    const problem = findRecordProblem(line);
    if (problem !== undefined) return problem;
    namespaces.add(line.namespace as string);
    byKey.set(JSON.stringify([line.namespace, line.key]), { line: number, isDone: false, ends: 0 });
    return undefined;
  }

  function readPlain(number: number, line: Fields): string | undefined {
    const entry = entryOf(line, fields);
    if (typeof entry === 'string') return entry;
    const meaning = meanings.get(entry.status);
    if (meaning === undefined) {
      if (unknown.size < mostNamed && !unknown.has(entry.status)) unknown.set(entry.status, number);
      return undefined;
    }
    const state = byKey.get(entry.key) ?? { line: number, isDone: false, ends: 0 };
    byKey.set(entry.key, state);
    // Once a line says done, later lines cannot undo it.
    if (!state.isDone) note(state, number, meaning, entry.status);
    return undefined;
  }

  for await (const batch of batches) for (const line of batch) read(line);
  const chosen = new Set<number>();
  for (const state of byKey.values()) chosen.add(isOpen(state) ? state.openedBy : state.line);
  return { form: form ?? 'semel', fields, chosen, lines, bad, badCount, unknown, namespaces };
}

/** What the lines so far say about one key. */
interface KeyState {
  line: number;
  isDone: boolean;
  /** How many attempts are said to have failed. */
  ends: number;
  /** How many attempts began, by each word for that: one attempt may be state as queued and then as running. */
  begins?: Map<string, number>;
  /** An attempt ended in an unknown way. */
  isUnknown?: true;
  /** The last line that leaves it open. */
  openedBy?: number;
}

function note(state: KeyState, line: number, meaning: Meaning, status: string): void {
  state.line = line;
  if (meaning === 'done') state.isDone = true;
  else if (meaning !== 'doubt') state.ends += 1;
  else {
    const isUnknown = unknownEndings.has(status);
    if (isUnknown || state.isUnknown === undefined) state.openedBy = line;
    if (isUnknown) state.isUnknown = true;
    state.begins ??= new Map();
    state.begins.set(status, (state.begins.get(status) ?? 0) + 1);
  }
}

/** A failure accounts for its own attempt, never for an earlier one whose ending is unknown. */
function isOpen(state: KeyState): state is KeyState & { openedBy: number } {
  if (state.isDone || state.openedBy === undefined) return false;
  return state.isUnknown === true || Math.max(...(state.begins ?? new Map()).values()) > state.ends;
}

export type Fields = Readonly<Record<string, unknown>>;

export function parsed(text: string | undefined): Fields | string {
  if (text === undefined) return 'it is too long';
  if (isTooDeep(text)) return 'it is nested too deep';
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Fields)
      : 'it is not a JSON object';
  } catch {
    return 'it is not JSON';
  }
}

function fieldsOf(line: Fields): PlainFields {
  const first = (names: readonly string[]) =>
    names.find((name) => Object.hasOwn(line, name)) ?? (names[0] as string);
  return { key: first(usualFields.key), time: first(usualFields.time), status: first(usualFields.status) };
}
