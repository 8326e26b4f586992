// The objects that JSON does not know and that can be rebuilt from data alone, each found by its own prototype.
// Says what each consists of and how to rebuild it. Subclasses have no entry: what they add would be lost.

export interface Kind {
  readonly tag: string;
  readonly prototype: object;
  /** Parts may be any value; the codec stores them like the members of an array or of a plain object. */
  toParts(value: object): string | null | readonly unknown[] | Readonly<Record<string, unknown>>;
  fromParts(parts: never): object;
}

interface Constructor<T> {
  readonly name: string;
  readonly prototype: T;
}

function kind<T extends object, Parts extends ReturnType<Kind['toParts']>>(
  type: Constructor<T>,
  toParts: (value: T) => Parts,
  fromParts: (parts: Parts) => T,
): Kind {
  return { tag: type.name, prototype: type.prototype, toParts: (value) => toParts(value as T), fromParts };
}

interface ViewConstructor extends Constructor<ArrayBufferView> {
  new (buffer: ArrayBuffer): ArrayBufferView;
}

const views: readonly ViewConstructor[] = [
  DataView,
  Uint8Array,
  Uint8ClampedArray,
  Uint16Array,
  Uint32Array,
  Int8Array,
  Int16Array,
  Int32Array,
  Float32Array,
  Float64Array,
  BigUint64Array,
  BigInt64Array,
];

const errors: readonly Constructor<Error>[] = [
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
  AggregateError,
];

export const kinds: readonly Kind[] = [
  kind(
    Date,
    (date) => (Number.isNaN(date.getTime()) ? null : date.toISOString()),
    (text) => new Date(text ?? Number.NaN),
  ),
  kind(
    Map,
    (map) => [...map],
    (entries) => new Map(entries),
  ),
  kind(
    Set,
    (set) => [...set],
    (items) => new Set(items),
  ),
  kind(
    RegExp,
    ({ source, flags, lastIndex }) => ({ source, flags, lastIndex }),
    ({ source, flags, lastIndex }) => Object.assign(new RegExp(source, flags), { lastIndex }),
  ),
  kind(
    URL,
    (url) => url.href,
    (href) => new URL(href),
  ),
  kind(ArrayBuffer, (buffer) => Buffer.from(buffer).toString('base64'), bytesOf),
  kind(
    Buffer,
    (buffer) => buffer.toString('base64'),
    (text) => Buffer.from(text, 'base64'),
  ),
  ...views.map((View) =>
    kind(
      View,
      ({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength).toString('base64'),
      (text) => new View(bytesOf(text)),
    ),
  ),
  ...errors.map((type) => kind(type, partsOfError, (parts) => errorFrom(parts, type.prototype))),
];

/** A copy of its own: small Buffers share a pool, and wider elements need an aligned start. */
function bytesOf(text: string): ArrayBuffer {
  return new Uint8Array(Buffer.from(text, 'base64')).buffer;
}

/** What constructors and libraries hide on an error. The stack is left out: it describes a process that is gone. */
const hiddenMembers = ['name', 'message', 'code', 'cause', 'errors'];

interface ErrorParts extends Readonly<Record<string, unknown>> {
  readonly shown: Readonly<Record<string, unknown>>;
}

function partsOfError(error: Error): ErrorParts {
  const hidden: Record<string, unknown> = {};
  for (const name of hiddenMembers) {
    const property = Object.getOwnPropertyDescriptor(error, name);
    if (property?.enumerable === false) hidden[name] = property.value;
  }
  return { ...hidden, shown: { ...error } };
}

function errorFrom({ shown, ...hidden }: ErrorParts, prototype: Error): Error {
  const error: Error = Object.setPrototypeOf(new Error(), prototype);
  const define = (name: string, value: unknown, enumerable: boolean) =>
    Object.defineProperty(error, name, { value, enumerable, writable: true, configurable: true });
  for (const [name, value] of Object.entries(hidden)) define(name, value, false);
  for (const [name, value] of Object.entries(shown)) define(name, value, true);
  // The stack that `new Error` took here would point at the codec.
  if (!Object.keys(error).includes('stack')) define('stack', `${error.name}: ${error.message}`, false);
  return error;
}
