// Canonical JSON (RFC 8785): one text per value, whatever the order of its members. Refuses everything that JSON would
// drop, merge or change: two intents must never share a text.

import { SemelError } from '../errors.ts';
import {
  areDenseKeys,
  describeKind,
  formatPath,
  isArrayPrototype,
  isPlainPrototype,
  looksFull,
  type Step,
  visibleSymbol,
} from '../plain.ts';

export interface CanonicalOptions {
  /** The name of the value in messages. @default 'args' */
  readonly path?: string;
  /** How deep containers may nest. @default 64 */
  readonly maxDepth?: number;
  /** How long the text may get, in characters. @default 1_048_576 */
  readonly maxBytes?: number;
}

interface Walk {
  text: string;
  readonly root: string;
  readonly maxDepth: number;
  readonly maxBytes: number;
  /** The current place; an error leaves it there. */
  readonly steps: Step[];
  readonly ancestors: object[];
}

export function canonicalJson(value: unknown, options: CanonicalOptions = {}): string {
  const walk: Walk = {
    text: '',
    root: options.path ?? 'args',
    maxDepth: options.maxDepth ?? 64,
    maxBytes: options.maxBytes ?? 1_048_576,
    steps: [],
    ancestors: [],
  };
  try {
    write(walk, value);
  } catch (error) {
    if (error instanceof SemelError) throw error;
    throw refusal(walk, 'threw when it was read', 'Pass plain data instead of a getter or a proxy.', error);
  }
  return walk.text;
}

/** The same text for a string, number, boolean or null; undefined: it is something else, or refused. */
export function scalarJson(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return quoteText(value);
    case 'number':
      return Number.isFinite(value) ? `${value}` : undefined;
    case 'boolean':
      return value ? 'true' : 'false';
    default:
      return value === null ? 'null' : undefined;
  }
}

/** Undefined: it is not well-formed. */
function quoteText(text: string): string | undefined {
  // A loop, not a pattern: most values are short, and every call has some.
  if (text.length > 100) return text.isWellFormed() ? JSON.stringify(text) : undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x22 || code === 0x5c || code >= 0xd800)
      return text.isWellFormed() ? JSON.stringify(text) : undefined;
  }
  return `"${text}"`;
}

function write(walk: Walk, value: unknown): void {
  if (typeof value === 'object' && value !== null) writeContainer(walk, value);
  else if (typeof value === 'string') walk.text += quote(walk, value);
  else {
    const text = scalarJson(value);
    if (text === undefined) throw notCanonical(walk, value);
    walk.text += text;
  }
  // Checked at every step: a small graph of shared references can make an endless text.
  if (walk.text.length > walk.maxBytes) {
    throw tooLong(walk);
  }
}

function tooLong(walk: Walk): SemelError {
  return refusal(walk, `makes more than ${walk.maxBytes} characters`, 'Pass a reference or a digest of it.');
}

function writeContainer(walk: Walk, value: object): void {
  if (walk.ancestors.includes(value)) {
    throw refusal(walk, 'refers back to what contains it', 'Pass an id instead of the reference.');
  }
  if (walk.ancestors.length === walk.maxDepth) {
    throw refusal(walk, `is nested deeper than ${walk.maxDepth} levels`, 'Pass a flatter value.');
  }
  const prototype: object | null = Object.getPrototypeOf(value);
  const isArray = Array.isArray(value);
  if (isArray ? !isArrayPrototype(prototype) : !isPlainPrototype(prototype)) throw notCanonical(walk, value);
  const symbol = visibleSymbol(value);
  if (symbol !== undefined) {
    walk.steps.push(symbol);
    throw refusal(walk, 'is keyed by a symbol', 'Use a string as the key.');
  }

  walk.ancestors.push(value);
  if (isArray) writeArray(walk, value);
  else writeObject(walk, value as Record<string, unknown>);
  walk.ancestors.pop();
}

function writeArray(walk: Walk, array: readonly unknown[]): void {
  // Before listing its keys: each item takes at least one character.
  if (array.length > walk.maxBytes && looksFull(array)) throw tooLong(walk);
  const keys = Object.keys(array);
  if (!areDenseKeys(keys, array.length)) throw notDense(walk, array, keys);
  walk.text += '[';
  for (let index = 0; index < array.length; index++) {
    if (index > 0) walk.text += ',';
    walk.steps.push(index);
    write(walk, array[index]);
    walk.steps.pop();
  }
  walk.text += ']';
}

function writeObject(walk: Walk, object: Readonly<Record<string, unknown>>): void {
  if (typeof object.toJSON === 'function')
    throw refusal(walk, 'has its own toJSON', 'Pass what toJSON() returns.');
  let separator = '{';
  const keys = Object.keys(object);
  // Before sorting them.
  if (keys.length > walk.maxBytes) throw tooLong(walk);
  for (const key of sorted(keys)) {
    walk.steps.push(key);
    const member = object[key];
    if (member !== undefined) {
      walk.text += `${separator}${quote(walk, key)}:`;
      separator = ',';
      write(walk, member);
    }
    walk.steps.pop();
  }
  walk.text += separator === '{' ? '{}' : '}';
}

/** By UTF-16 code units, as `>` and the default sort compare. */
function sorted(keys: string[]): string[] {
  if (keys.length > 32) return keys.sort();
  // Most objects are small and nearly sorted: insertion sort is fastest.
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] as string;
    let at = index;
    for (; at > 0 && (keys[at - 1] as string) > key; at--) keys[at] = keys[at - 1] as string;
    keys[at] = key;
  }
  return keys;
}

function quote(walk: Walk, text: string): string {
  const quoted = quoteText(text);
  if (quoted !== undefined) return quoted;
  throw refusal(walk, 'contains a lone surrogate', 'Pass text.toWellFormed(), or the bytes as base64.');
}

function notDense(walk: Walk, array: readonly unknown[], keys: readonly string[]): SemelError {
  const hole = array.findIndex((_, index) => !Object.hasOwn(array, index));
  walk.steps.push(hole === -1 ? (keys[array.length] as string) : hole);
  return hole === -1
    ? refusal(walk, 'is a named member of an array', 'Pass an object that contains the array.')
    : refusal(walk, 'is a hole in an array', 'Pass null where there is no value.');
}

const advice: Readonly<Record<string, string>> = {
  NaN: 'Pass null, or leave the member out.',
  Infinity: 'Pass null, or a string that says it.',
  '-Infinity': 'Pass null, or a string that says it.',
  undefined: 'Pass null.',
  'a BigInt': 'Pass value.toString().',
  'a function': 'Leave it out: a function is not data.',
  'a symbol': 'Pass its description.',
  'a Date': 'Pass date.toISOString().',
  'a Map': 'Pass Object.fromEntries(map).',
  'a Set': 'Pass [...set], sorted if its order means nothing.',
  'a RegExp': 'Pass regexp.source.',
  'a URL': 'Pass url.href.',
  'a Promise': 'Await it first.',
  'an Error': 'Pass error.message.',
  'a typed array': "Pass Buffer.from(bytes).toString('base64').",
  'a DataView': "Pass Buffer.from(view.buffer).toString('base64').",
  'an ArrayBuffer': "Pass Buffer.from(buffer).toString('base64').",
  'a boxed primitive': 'Pass value.valueOf().',
};

function notCanonical(walk: Walk, value: unknown): SemelError {
  const kind = describeKind(value);
  return refusal(walk, `is ${kind}`, advice[kind] ?? 'Pass a plain object with the fields that matter.');
}

function refusal(walk: Walk, what: string, next: string, cause?: unknown): SemelError {
  const path = formatPath(walk.root, walk.steps);
  return new SemelError('NOT_CANONICAL', `${path} ${what}; a key cannot be derived from it.`, {
    next,
    path,
    cause,
  });
}
