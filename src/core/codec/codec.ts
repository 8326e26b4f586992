// Stores what an effect returned so that a replay is deep-equal to the first answer. Plain JSON is stored as it is;
// what JSON would change is tagged. Refuses what would come back as something else: functions, sockets, instances.

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
import { type Kind, kinds } from './codec-kinds.ts';

export type Encoded =
  | { readonly ok: true; readonly text: string }
  | {
      readonly ok: false;
      readonly reason: 'not-storable' | 'too-large';
      readonly path?: string;
      readonly detail: string;
    };

const maxDepth = 200;

/** The member that makes an object a tag. A user's object that has it is wrapped in a tag of its own. */
const mark = '$semel';

interface Walk {
  /** What is left of the size limit, as a lower bound: shared references can make a small graph huge. */
  left: number;
  readonly steps: Step[];
  readonly ancestors: object[];
}

class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly reason: 'not-storable' | 'too-large';

  constructor(reason: 'not-storable' | 'too-large', detail: string) {
    super(detail);
    this.reason = reason;
  }
}

export function encodeResult(value: unknown, limits: { readonly maxBytes: number }): Encoded {
  const { maxBytes } = limits;
  const flat = encodeFlat(value, maxBytes);
  if (flat !== undefined) return { ok: true, text: flat };
  const walk: Walk = { left: maxBytes, steps: [], ancestors: [] };
  const tooLarge: Encoded = { ok: false, reason: 'too-large', detail: `more than ${maxBytes} bytes` };
  try {
    if ('toJSON' in Array.prototype)
      throw new Refusal('not-storable', 'cannot be stored: lists have a toJSON');
    if ('toJSON' in Object.prototype)
      throw new Refusal('not-storable', 'cannot be stored: all objects have a toJSON');
    const text = JSON.stringify(pack(walk, value));
    // A character is at most three bytes: most texts need no count.
    return text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes ? { ok: true, text } : tooLarge;
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'too-large') return tooLarge;
    const path = formatPath('result', walk.steps);
    const detail = error instanceof Refusal ? error.message : 'threw when it was read';
    return { ok: false, reason: 'not-storable', path, detail: `${path} ${detail}` };
  }
}

/** A getter or a proxy may throw whenever it is read: then the walk says where. */
function encodeFlat(value: unknown, maxBytes: number): string | undefined {
  try {
    return isFlat(value, maxBytes) ? JSON.stringify(value) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A plain object of strings, numbers and the like that certainly fits: JSON preserves it, so it need not be walked. Most
 * args and results are like this.
 */
function isFlat(value: unknown, maxBytes: number): boolean {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return false;
  if ('toJSON' in value || mark in value) return false;
  // A character is at most six bytes of JSON, such as \u0000; a number has at most 25.
  let left = maxBytes / 6;
  for (const name in value) {
    const member = (value as Members)[name];
    left -= name.length + 5;
    if (typeof member === 'string') left -= member.length;
    else if (typeof member === 'number') {
      if (!Number.isFinite(member) || Object.is(member, -0)) return false;
    } else if (member !== null && typeof member !== 'boolean') return false;
    if (left < 0 || !Object.hasOwn(value, name)) return false;
  }
  return visibleSymbol(value) === undefined;
}

export function decodeResult(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // Only the encoder writes this text, and it never escapes letters: if the marker is not in it, there are no tags.
    return text.includes(`"${mark}":`) ? unpack(value) : value;
  } catch (cause) {
    throw new SemelError('RESULT_OMITTED', 'The stored result cannot be read.', { cause });
  }
}

/** For a result that is read again and again: parsed once where it is plain, and copied for each reader. */
export function resultReader(text: string): () => unknown {
  if (text.includes(`"${mark}":`)) return () => decodeResult(text);
  const master = decodeResult(text);
  return isCopyable(master, 0) ? () => copyJson(master) : () => decodeResult(text);
}

/** Parsed JSON that is not too deep to be walked at every read. */
function isCopyable(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth <= 50 && Object.values(value).every((member) => isCopyable(member, depth + 1));
}

function copyJson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const copy = value.slice();
    for (let index = 0; index < copy.length; index += 1) copy[index] = copyJson(copy[index]);
    return copy;
  }
  // The spread makes own members of all names, so that assigning `__proto__` changes a member and not the prototype.
  const copy: Members = { ...value };
  for (const name in copy) {
    const member = copy[name];
    if (typeof member === 'object' && member !== null && Object.hasOwn(copy, name))
      copy[name] = copyJson(member);
  }
  return copy;
}

/** The value as JSON keeps it. Where JSON keeps all of it, that is the value itself: plain data is never copied. */
function pack(walk: Walk, value: unknown): unknown {
  walk.left -= 1;
  if (walk.left < 0) throw new Refusal('too-large', '');
  switch (typeof value) {
    case 'string':
      walk.left -= value.length;
      return value;
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : tag('number', numberText(value));
    case 'undefined':
      return tag('undefined', undefined);
    case 'bigint':
      return tag('BigInt', String(value));
    case 'object':
      return value === null ? null : packObject(walk, value);
    default:
      throw new Refusal('not-storable', `is ${describeKind(value)}`);
  }
}

function packObject(walk: Walk, value: object): unknown {
  if (walk.ancestors.includes(value)) throw new Refusal('not-storable', 'refers back to what contains it');
  if (walk.ancestors.length === maxDepth) {
    throw new Refusal('not-storable', `is nested deeper than ${maxDepth} levels`);
  }
  if (hasHiddenToJson(value)) throw new Refusal('not-storable', 'has a hidden toJSON');
  walk.ancestors.push(value);
  const packed = packByPrototype(walk, value, Object.getPrototypeOf(value));
  if (visibleSymbol(value) !== undefined) throw new Refusal('not-storable', 'has a symbol as a key');
  walk.ancestors.pop();
  return packed;
}

/** JSON.stringify would store what `toJSON` returns. An enumerable one is refused like any function. */
function hasHiddenToJson(value: object): boolean {
  if (!('toJSON' in value) || typeof value.toJSON !== 'function') return false;
  const isLiteral = Array.isArray(value) || isPlainPrototype(Object.getPrototypeOf(value));
  return isLiteral && !Object.prototype.propertyIsEnumerable.call(value, 'toJSON');
}

function packByPrototype(walk: Walk, value: object, prototype: object | null): unknown {
  if (Array.isArray(value) && isArrayPrototype(prototype)) return packArray(walk, value);
  if (isPlainPrototype(prototype)) return packPlain(walk, value as Members, prototype);
  const kind = byPrototype.get(prototype as object);
  if (kind === undefined) throw new Refusal('not-storable', `is ${describeKind(value)}`);
  if (hasMembersOfItsOwn(value))
    throw new Refusal('not-storable', `is ${describeKind(value)} with members of its own`);
  return tag(kind.tag, packParts(walk, kind.toParts(value)));
}

/** A replay without them would not be equal. Not checked for bytes, which would list every index; errors keep theirs. */
function hasMembersOfItsOwn(value: object): boolean {
  return !ArrayBuffer.isView(value) && !(value instanceof Error) && Object.keys(value).length > 0;
}

/** The container of the parts is ours: it needs no tag of its own, whatever it holds. */
function packParts(walk: Walk, parts: ReturnType<Kind['toParts']>): unknown {
  if (Array.isArray(parts)) return packItems(walk, parts);
  return typeof parts === 'object' && parts !== null
    ? packMembers(walk, parts as Members)
    : pack(walk, parts);
}

type Members = Record<string, unknown>;

function packArray(walk: Walk, array: readonly unknown[]): unknown {
  // Before its keys are listed: each item takes a byte at least.
  if (array.length > walk.left && looksFull(array)) throw new Refusal('too-large', '');
  const keys = Object.keys(array);
  if (areDenseKeys(keys, array.length)) return packItems(walk, array);
  return tag('array', packParts(walk, { length: array.length, entries: Object.entries(array) }));
}

function packItems(walk: Walk, items: readonly unknown[]): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (let index = 0; index < items.length; index++) {
    walk.steps.push(index);
    const item = items[index];
    const packed = pack(walk, item);
    if (copy === undefined && packed !== item) copy = items.slice(0, index);
    copy?.push(packed);
    walk.steps.pop();
  }
  return copy ?? items;
}

function packPlain(walk: Walk, object: Members, prototype: object | null): unknown {
  const members = packMembers(walk, object);
  if (prototype === null) return tag('null-prototype', members);
  return Object.hasOwn(object, mark) ? tag('object', members) : members;
}

function packMembers(walk: Walk, object: Members): Members {
  const keys = Object.keys(object);
  let copy: Members | undefined;
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] as string;
    walk.steps.push(key);
    const member = object[key];
    const packed = pack(walk, member);
    if (copy === undefined && packed !== member) {
      // Without a prototype, `__proto__` is a member like any other.
      copy = Object.create(null) as Members;
      for (const earlier of keys.slice(0, index)) copy[earlier] = object[earlier];
    }
    if (copy !== undefined) copy[key] = packed;
    walk.steps.pop();
  }
  return copy ?? object;
}

function tag(name: string, value: unknown): Members {
  return { [mark]: name, value };
}

function numberText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

/** Turns tags back into values, in place: each member is there already and its own, so no setter can run. */
function unpack(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value) || !Object.hasOwn(value, mark)) return unpackMembers(value);
  const { [mark]: name, value: parts } = value as Members;
  const read = readers.get(name as string);
  if (read === undefined) throw new TypeError(`unknown tag ${JSON.stringify(name)}`);
  return read(unpackMembers(parts) as never);
}

function unpackMembers(container: unknown): unknown {
  if (typeof container !== 'object' || container === null) return container;
  const members = container as Members;
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (typeof member === 'object' && member !== null) members[key] = unpack(member);
  }
  return members;
}

const byPrototype: ReadonlyMap<object, Kind> = new Map(kinds.map((kind) => [kind.prototype, kind]));

/** Rebuilds a tagged value from its parts. Stored text never chooses a class or code to run. */
const readers: ReadonlyMap<string, (parts: never) => unknown> = new Map<string, (parts: never) => unknown>([
  ['undefined', () => undefined],
  ['number', (text: string) => Number(text)],
  ['BigInt', (text: string) => BigInt(text)],
  ['object', (members: Members) => members],
  ['null-prototype', (members: Members) => Object.assign(Object.create(null), members)],
  ['array', restoreArray],
  ...kinds.map((kind) => [kind.tag, kind.fromParts] as const),
]);

function restoreArray({ length, entries }: { length: number; entries: [string, unknown][] }): unknown[] {
  const array: unknown[] = new Array(length);
  for (const [key, value] of entries) {
    Object.defineProperty(array, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return array;
}
