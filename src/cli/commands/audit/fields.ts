// Which fields of a log hold the time, the key, the tool and the args: as named by options, or guessed from the first lines.

import { looksFresh, looksReworded } from '../../../core/key/changing-names.ts';
import { instantOf } from '../../args/instant.ts';
import { parseIfJson, valueAt } from '../../args/path.ts';

export type Fields = Readonly<Record<string, unknown>>;

export interface Chosen {
  /** What two calls must share to be the same. */
  readonly same: readonly string[];
  /** Columns that may be worded differently. */
  readonly worded: readonly string[];
  readonly time: string;
  readonly key: string | undefined;
  /** The field that names the tool, and the one that holds its args, where they are known. */
  readonly name: string | undefined;
  readonly args: string | undefined;
  readonly guessed: readonly ('same' | 'time' | 'key')[];
}

const times = [
  'ts',
  'time',
  'timestamp',
  '@timestamp',
  'date',
  'datetime',
  'at',
  'created_at',
  'createdAt',
  't',
];
const keys = ['key', 'idempotency_key', 'idempotencyKey', 'idempotency-key', 'dedupe_key', 'dedup_key'];
const names = ['tool', 'tool_name', 'toolName', 'name', 'function', 'action', 'operation', 'method', 'job'];
const argNames = ['args', 'arguments', 'input', 'params', 'parameters', 'payload', 'body', 'data'];

const timeNames = /^(ts|time|timestamp|@timestamp|now|at|date)$/i;

/** Comparing these would hide every repeat. */
export function isFresh(name: string): boolean {
  return timeNames.test(name) || looksFresh(name);
}

function asFields(value: unknown): Fields | undefined {
  const found = parseIfJson(value);
  return typeof found === 'object' && found !== null && !Array.isArray(found) ? (found as Fields) : undefined;
}

export interface Compared {
  /** What is the same in every call of one intent. */
  readonly kept: unknown;
  /** What a model words differently each time. */
  readonly worded: unknown;
}

/** Args that hold nothing but text are compared whole: two texts are two intents then. */
export function splitArgs(value: unknown): Compared {
  const fields = asFields(value);
  if (fields === undefined) return { kept: parseIfJson(value), worded: undefined };
  const stable = Object.entries(fields).filter(([name]) => !isFresh(name));
  const kept = stable.filter(([name]) => !looksReworded(name));
  if (kept.length === 0 || kept.length === stable.length)
    return { kept: Object.fromEntries(stable), worded: undefined };
  const worded = stable.filter(([name]) => looksReworded(name));
  return { kept: Object.fromEntries(kept), worded: Object.fromEntries(worded) };
}

export interface NamedFields {
  readonly same: readonly string[] | undefined;
  readonly time: string | undefined;
  readonly key: string | undefined;
}

export function choose(
  lines: readonly Fields[],
  named: NamedFields,
): Chosen | { readonly missing: 'same' | 'time' } {
  const has = (path: string) => lines.some((line) => valueAt(line, path) !== undefined);
  const time =
    named.time ?? times.find((path) => lines.some((line) => instantOf(valueAt(line, path)) !== undefined));
  if (time === undefined) return { missing: 'time' };
  const name = names.find(has);
  const args = argNames.find((path) => lines.some((line) => asFields(valueAt(line, path)) !== undefined));
  const places = ['', ...(args === undefined ? [] : [`${args}.`]), 'headers.'];
  const key = named.key ?? places.flatMap((place) => keys.map((path) => place + path)).find(has);
  const columns = named.same ?? guessSame(lines, name, args, [time, key]);
  if (columns === undefined) return { missing: 'same' };
  const isWorded = (column: string) => named.same === undefined && column !== name && looksReworded(column);
  const kept = columns.filter((column) => !isWorded(column) || column === args);
  // The tool's name alone would make one intent of everything.
  const isEnough = kept.some((column) => column !== name);
  const same = isEnough ? kept : columns;
  const worded = columns.filter((column) => !same.includes(column));
  const guessed = (['same', 'time', 'key'] as const).filter((each) => named[each] === undefined);
  return { same, worded, time, key, name, args, guessed };
}

/** The tool and its args; in a table, the tool and every column that is not a time, a key or fresh. */
function guessSame(
  lines: readonly Fields[],
  name: string | undefined,
  args: string | undefined,
  others: readonly (string | undefined)[],
): readonly string[] | undefined {
  const tool = name === undefined ? [] : [name];
  if (args !== undefined) return [...tool, args];
  const columns = Object.keys(lines.find((line) => tool.every((each) => Object.hasOwn(line, each))) ?? {});
  const outcome =
    /^(status|state|outcome|result|ok|success|error|level|duration.*|latency.*|elapsed.*|msg|message|id|line)$/i;
  const rest = columns.filter(
    (column) => column !== name && !others.includes(column) && !isFresh(column) && !outcome.test(column),
  );
  return rest.length === 0 ? undefined : [...tool, ...rest];
}
