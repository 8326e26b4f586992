// What counts as plain data, what anything else is called in a message, and how a place in data is written.
// Judges values one at a time: walking them, and what to do about a refusal, is the caller's.

import { SemelError } from './errors.ts';
import { limits } from './limits.ts';

/** A step from a container to its member: a name, an index, or the symbol nobody may use. */
export type Step = string | number | symbol;

/** True for the prototype of an object literal, of a null-prototype object, and of another realm's literals. */
export function isPlainPrototype(prototype: object | null): boolean {
  return (
    prototype === Object.prototype ||
    prototype === null ||
    // Test runners and `vm` hand over objects whose Object.prototype is not ours; refusing them helps nobody.
    (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf'))
  );
}

/** True for the prototype of an array literal, here or in another realm. A subclass carries more than its items. */
export function isArrayPrototype(prototype: object | null): boolean {
  return prototype === Array.prototype || (Array.isArray(prototype) && Object.hasOwn(prototype, 'flatMap'));
}

/** The keys are those of an array without holes and without named members: indices come first, in order. */
export function areDenseKeys(keys: readonly string[], length: number): boolean {
  return keys.length === length && (length === 0 || keys[length - 1] === String(length - 1));
}

/** Whether a list seems to have no holes. Listing its keys would take seconds for millions of items. */
export function looksFull(array: readonly unknown[]): boolean {
  return Object.hasOwn(array, 0) && Object.hasOwn(array, array.length - 1);
}

/** The symbol that makes an object more than its named members. Hidden symbols count as little as hidden names. */
export function visibleSymbol(value: object): symbol | undefined {
  const symbols = Object.getOwnPropertySymbols(value);
  if (symbols.length === 0) return undefined;
  return symbols.find((symbol) => Object.prototype.propertyIsEnumerable.call(value, symbol));
}

/**
 * What has not run, or not ended, when it is returned: an iterator whose body runs only when somebody asks it for more (a generator, or what
 * `.map()` makes of one), or a list or record of promises.
 */
export function isLazy(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  try {
    if (Array.isArray(value)) return value.some(isThenable);
    if (typeof (value as Iterator<unknown>).next === 'function')
      return Symbol.iterator in value || Symbol.asyncIterator in value;
    return isPlainPrototype(Object.getPrototypeOf(value)) && Object.values(value).some(isThenable);
  } catch {
    // What cannot be read is not stored either.
    return false;
  }
}

function isThenable(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && typeof (value as PromiseLike<unknown>).then === 'function'
  );
}

/** `function*`: calling it runs nothing. */
export function isGeneratorFunction(value: unknown): boolean {
  return typeof value === 'function' && /GeneratorFunction\]$/.test(Object.prototype.toString.call(value));
}

/** Nothing to see: spaces, or characters that only format. */
export function isBlank(text: string): boolean {
  return !/[^\s\p{Z}\p{Cf}]/u.test(text);
}

/** `args.items[3]["due date"]`. */
export function formatPath(root: string, steps: readonly Step[]): string {
  let path = root;
  for (const step of steps) {
    if (typeof step === 'number') path += `[${step}]`;
    else if (typeof step === 'symbol') path += `[${String(step)}]`;
    // A path is for reading: a key as long as a page would bury the message.
    else if (step.length > 80) path += `[${JSON.stringify(`${step.slice(0, 77)}…`)}]`;
    else
      path += /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
  }
  return path;
}

/** What a value is, with its article: `a Date`, `NaN`, `an instance of Invoice`. */
export function describeKind(value: unknown): string {
  switch (typeof value) {
    case 'object':
      return value === null ? 'null' : kindOfObject(value);
    case 'number':
      return Number.isFinite(value) ? 'a number' : String(value);
    case 'bigint':
      return 'a BigInt';
    case 'undefined':
      return 'undefined';
    default:
      return `a ${typeof value}`;
  }
}

const familiar = [
  Date,
  Map,
  Set,
  RegExp,
  URL,
  Promise,
  Error,
  ArrayBuffer,
  DataView,
  WeakMap,
  WeakSet,
] as const;
const boxes = [String, Number, Boolean, BigInt, Symbol] as const;

function kindOfObject(value: object): string {
  const prototype: object | null = Object.getPrototypeOf(value);
  const known = familiar.find((kind) => kind.prototype === prototype);
  if (known !== undefined) return /^[AE]/.test(known.name) ? `an ${known.name}` : `a ${known.name}`;
  if (isPlainPrototype(prototype)) return 'an object';
  if (ArrayBuffer.isView(value)) return 'a typed array';
  if (boxes.some((box) => value instanceof box)) return 'a boxed primitive';
  const name: unknown = (value.constructor as { name?: unknown } | undefined)?.name;
  return typeof name === 'string' && name !== '' ? `an instance of ${name}` : 'an instance of a class';
}

/**
 * Plain objects and arrays copied, anything else as it is: what the caller changes afterwards changes no call. What
 * is not quite plain is left for the code that judges it.
 */
export function copyPlain(value: unknown): unknown {
  try {
    const budget = { left: 1_000 };
    const copy = copySmall(value, budget, 0);
    return budget.left >= 0 ? copy : copyGraph(value);
  } catch (error) {
    if (error instanceof SemelError) throw error;
    // A getter that throws will throw again later, where the error can name its path.
    return value;
  }
}

/** Uncopied, they could change between the key and the effect. */
function tooMany(): SemelError {
  return new SemelError(
    'INVALID_ARGS',
    `The args hold more than ${limits.argsContainers} objects and lists.`,
    { path: 'args', next: 'Pass a reference, such as the path of a file, instead of the data.' },
  );
}

/** Most args are small, and need no memory of what was copied. Stops where the budget is used up, or too deep. */
function copySmall(value: unknown, budget: { left: number }, depth: number): unknown {
  const shell = budget.left < 0 ? undefined : copyShell(value);
  if (shell === undefined) return value;
  budget.left -= depth > 50 ? 1_000 : 1;
  if (budget.left < 0) return value;
  if (Array.isArray(shell)) return shell.map((item) => copySmall(item, budget, depth + 1));
  for (const name in shell) {
    const member = shell[name];
    if (isCopied(name, member) && Object.hasOwn(shell, name))
      shell[name] = copySmall(member, budget, depth + 1);
  }
  return shell;
}

/** Copies any size and depth in one pass. Shared references are copied once: a small graph could expand without end. */
function copyGraph(value: unknown): unknown {
  const copies = new Map<unknown, unknown>();
  const open: Members[] = [];
  const copyOf = (source: unknown) => {
    const known = copies.get(source);
    if (known !== undefined) return known;
    const shell = copyShell(source);
    if (shell === undefined) return source;
    if (copies.size >= limits.argsContainers) throw tooMany();
    copies.set(source, shell);
    open.push(shell);
    return shell;
  };
  const copy = copyOf(value);
  for (let shell = open.pop(); shell !== undefined; shell = open.pop()) {
    for (const name of Object.keys(shell)) {
      const member = shell[name];
      if (isCopied(name, member)) shell[name] = copyOf(member);
    }
  }
  return copy;
}

type Members = Record<string, unknown>;

/** A copy that still has the members of its source; undefined: not a plain container. */
function copyShell(value: unknown): Members | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const prototype: object | null = Object.getPrototypeOf(value);
  if (Array.isArray(value)) {
    if (!isArrayPrototype(prototype) || !areDenseKeys(Object.keys(value), value.length)) return undefined;
    return value.slice() as unknown as Members;
  }
  // With its symbols: what makes keys refuses them, and where nobody does they are part of the args.
  return isPlainPrototype(prototype) ? { ...value } : undefined;
}

/** `__proto__` never holds a container that passes: the spread copied it, or it is refused as a key. */
function isCopied(name: string, member: unknown): boolean {
  return typeof member === 'object' && member !== null && name !== '__proto__';
}
