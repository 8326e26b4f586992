// What counts as plain data, what anything else is called in a message, and how a place in data is written.
// Judges values one at a time: walking them, and what to do about a refusal, is the caller's.

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

/** The symbol that makes an object more than its named members. Hidden symbols count as little as hidden names. */
export function visibleSymbol(value: object): symbol | undefined {
  const symbols = Object.getOwnPropertySymbols(value);
  if (symbols.length === 0) return undefined;
  return symbols.find((symbol) => Object.prototype.propertyIsEnumerable.call(value, symbol));
}

/** `args.items[3]["due date"]`. */
export function pathOf(root: string, steps: readonly Step[]): string {
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
export function kindOf(value: unknown): string {
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
 * is not quite plain, too deep or too large is left for whoever judges it.
 */
export function copyPlain(value: unknown): unknown {
  try {
    return copied(value, { left: 100_000 }, 0);
  } catch {
    // A getter that throws will do so again where its place can be told; what has no end will be refused there.
    return value;
  }
}

function copied(value: unknown, budget: { left: number }, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  budget.left -= 1;
  if (depth > 100 || budget.left < 0) throw new RangeError('too much to copy');
  const prototype: object | null = Object.getPrototypeOf(value);
  if (Array.isArray(value)) {
    if (!isArrayPrototype(prototype) || !areDenseKeys(Object.keys(value), value.length)) return value;
    return value.map((item) => copied(item, budget, depth + 1));
  }
  if (!isPlainPrototype(prototype) || visibleSymbol(value) !== undefined) return value;
  const copy: Record<string, unknown> = { ...value };
  for (const name of Object.keys(copy)) {
    const member = copy[name];
    // `__proto__` never holds a container that passes: it is copied by the spread, or refused as a key.
    if (typeof member === 'object' && member !== null && name !== '__proto__')
      copy[name] = copied(member, budget, depth + 1);
  }
  return copy;
}
