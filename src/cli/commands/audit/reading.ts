// One pass over a log: which lines are calls, and which of their fields the finder compares.

import { hash } from 'node:crypto';
import { canonicalJson } from '../../../core/key/canonical-json.ts';
import { instantOf } from '../../args/instant.ts';
import { parseIfJson, valueAt } from '../../args/path.ts';
import { cut } from '../../render/wrap.ts';
import type { Entry } from './entries.ts';
import { type Chosen, choose, type Fields, type NamedFields, splitArgs } from './fields.ts';
import { createFinder, type Found, type Seen } from './finder.ts';

export interface ReadingOptions extends NamedFields {
  readonly withinMs: number;
  readonly nearMs: number;
  readonly restart: RegExp | undefined;
  /** Only lines in which these fields have these values. */
  readonly where: readonly (readonly [string, string])[];
  readonly tool: string | undefined;
}

export interface Reading {
  readonly chosen: Chosen;
  readonly found: Found;
  readonly lines: number;
  /** Lines that lack a field that is compared, or their time. */
  readonly notCompared: number;
  readonly unreadable: number;
  /** The first of them. */
  readonly unreadableLines: readonly number[];
  /** Field names of the args, by tool. */
  readonly fieldsOf: ReadonlyMap<string, readonly string[]>;
}

/** Why nothing could be compared. */
export interface Missing {
  readonly missing: 'same' | 'time' | 'lines' | 'calls';
  /** The fields that the lines have. */
  readonly fields: readonly string[];
  readonly asked?: readonly string[];
}

/** Enough to guess from: this many lines, or this many characters. */
const sample = 200;
const sampleCharacters = 16 * 1024 * 1024;
/** What is kept of a long start-up, to be compared once it can be guessed what. */
const mostWaiting = 100 * sample;
const mostWaitingCharacters = 4 * sampleCharacters;
const named = 10;
const longestKey = 500;
const mostTools = 1_000;

const startWords =
  /\b(restart(ed|ing)?|boot(ed|ing)|starting( up)?|start-?up|listening on|shutting down|sigterm|sigkill|out of memory|oom-?kill\w*|crash(ed|ing)?|exited with|(server|worker|process|application|app|service|agent|scheduler|container|daemon|job) (is )?(started|ready|up|online))\b/i;

export async function readLog(
  batches: AsyncIterable<readonly Entry[]>,
  options: ReadingOptions,
): Promise<Reading | Missing> {
  const finder = createFinder(options);
  const fieldsOf = new Map<string, readonly string[]>();
  const unreadableLines: number[] = [];
  let [lines, notCompared, unreadable] = [0, 0, 0];
  let chosen: Chosen | undefined;
  let waiting: Entry[] = [];
  let characters = 0;
  /** Guessed again only when the input has doubled; otherwise every batch would reread all lines before it. */
  let [enough, enoughCharacters] = [sample, sampleCharacters];
  let names: readonly string[] = [];

  function read({ fields, line, text }: Entry, by: Chosen): void {
    const isAside = fields !== undefined && !isAsked(fields, by);
    const at = fields && instantOf(valueAt(fields, by.time));
    const seen =
      fields === undefined || isAside || at === undefined ? undefined : seenIn(fields, line, at, by);
    // The built-in words apply only to lines that are not calls: a tool may be called `restart`.
    const isRestart = options.restart?.test(text) ?? (seen === undefined && startWords.test(text));
    if (isRestart) finder.restart(line, at);
    if (seen !== undefined) finder.call(seen);
    else if (fields === undefined && !isRestart) {
      unreadable += 1;
      if (unreadableLines.length < named) unreadableLines.push(line);
    } else if (!isRestart && !isAside) notCompared += 1;
  }

  /** Undefined: it lacks a field that is compared. */
  function seenIn(fields: Fields, line: number, at: number, by: Chosen): Seen | undefined {
    const values = by.same.map((path) => valueAt(fields, path));
    if (values.includes(undefined)) return undefined;
    const parts = by.guessed.includes('same')
      ? values.map(splitArgs)
      : values.map((value) => ({ kept: parseIfJson(value), worded: undefined }));
    const compared = textOf(parts.map(({ kept }) => kept));
    const worded = [...parts.map((part) => part.worded), ...by.worded.map((path) => valueAt(fields, path))];
    const name = copyOf(nameOf(fields, by));
    noteFields(name, fields, by);
    const key = by.key === undefined ? undefined : valueAt(fields, by.key);
    return {
      line,
      at,
      same: hash('sha1', compared, 'base64'),
      wording: worded.some((part) => part !== undefined) ? hash('sha1', textOf(worded), 'base64') : undefined,
      shown: copyOf(cut(compared, 160)),
      name,
      key: key === undefined || key === null || key === '' ? undefined : keyText(String(key)),
      failed: hasFailed(fields),
    };
  }

  function isAsked(fields: Fields, by: Chosen): boolean {
    if (options.tool !== undefined && nameOf(fields, by) !== options.tool) return false;
    return options.where.every(([path, value]) => String(valueAt(fields, path)) === value);
  }

  function noteFields(name: string, fields: Fields, { args }: Chosen): void {
    if (args === undefined || fieldsOf.has(name) || fieldsOf.size >= mostTools) return;
    const found = parseIfJson(valueAt(fields, args));
    if (typeof found === 'object' && found !== null && !Array.isArray(found))
      fieldsOf.set(name, Object.keys(found));
  }

  /** Guesses once there is enough to guess from; true: it could. */
  function begin(): ReturnType<typeof choose> {
    const first = waiting.flatMap(({ fields }) => (fields === undefined ? [] : [fields]));
    return choose(first, options);
  }

  for await (const batch of batches) {
    lines += batch.length;
    if (chosen === undefined) {
      for (const entry of batch) {
        waiting.push(entry);
        characters += entry.length;
      }
      if (waiting.length < enough && characters < enoughCharacters) continue;
      const choice = begin();
      [enough, enoughCharacters] = [2 * waiting.length, 2 * characters];
      // A long start-up may come before the first call.
      const mayCome = waiting.length < mostWaiting && characters < mostWaitingCharacters;
      if ('missing' in choice && mayCome) continue;
      if ('missing' in choice) return { ...choice, fields: seenFields(waiting) };
      chosen = choice;
      names = seenFields(waiting);
      for (const entry of waiting) read(entry, choice);
      waiting = [];
    } else for (const entry of batch) read(entry, chosen);
  }
  if (chosen === undefined) {
    if (!waiting.some(({ fields }) => fields !== undefined)) return { missing: 'lines', fields: [] };
    const choice = begin();
    if ('missing' in choice) return { ...choice, fields: seenFields(waiting) };
    chosen = choice;
    names = seenFields(waiting);
    for (const entry of waiting) read(entry, choice);
  }
  const found = finder.result();
  if (found.calls === 0) return { missing: 'calls', fields: names, asked: [...chosen.same, chosen.time] };
  return { chosen, found, lines, notCompared, unreadable, unreadableLines, fieldsOf };
}

function seenFields(entries: readonly Entry[]): readonly string[] {
  return [...new Set(entries.flatMap(({ fields }) => Object.keys(fields ?? {})))].slice(0, 20);
}

/** Many are kept in memory: a long one is shortened to its beginning and a digest. */
function keyText(key: string): string {
  return copyOf(key.length <= longestKey ? key : `${cut(key, longestKey)} (${hash('sha1', key, 'base64')})`);
}

/** A concatenated string keeps all of its parts in memory, and a slice keeps the whole string that it was cut from. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

function nameOf(fields: Fields, { name }: Chosen): string {
  const value = name === undefined ? '' : valueAt(fields, name);
  return cut(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''), 80);
}

function textOf(values: readonly unknown[]): string {
  try {
    return canonicalJson(values);
  } catch {
    return JSON.stringify(values);
  }
}

const failures = /^(fail(ed|ure)?|error(ed)?|rejected|refused|exception)$/i;

function hasFailed({ status, state, outcome, level, ok, success, error }: Fields): boolean {
  const said = [status, state, outcome, level].some(
    (word) => typeof word === 'string' && failures.test(word),
  );
  return said || ok === false || success === false || (typeof error === 'string' && error !== '');
}
