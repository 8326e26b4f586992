// Stored values as JSON, whatever they are: a ledger keeps more kinds than JSON has, and none of them may keep a list from
// being printed. Big integers are texts of their digits, bytes are base64, and a sparse array is an object of its entries.

/** Deeper values are cut: no reader follows them, and a stack has an end. */
const deepest = 200;

export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(plain(value, []), null, indent) ?? String(value);
}

function plain(value: unknown, above: readonly object[]): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'symbol' || typeof value === 'function') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[circular]';
  if (above.length >= deepest) return '[deeper]';
  try {
    return plainObject(value, [...above, value]);
  } catch {
    return '[unreadable]';
  }
}

function plainObject(value: object, above: readonly object[]): unknown {
  if (Array.isArray(value)) return plainArray(value, above);
  if (value instanceof Map) return [...value].map((entry) => plain(entry, above));
  if (value instanceof Set) return [...value].map((each) => plain(each, above));
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString('base64');
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  if (value instanceof RegExp) return String(value);
  if ('toJSON' in value && typeof value.toJSON === 'function') return plain(value.toJSON(), above);
  const shown = Object.entries(value).map(([name, member]) => [name, plain(member, above)] as const);
  const named = value instanceof Error ? [['message', value.message] as const, ...shown] : shown;
  // Not by assignment: a member may be called __proto__.
  return Object.fromEntries(named);
}

/** Holes are not there: written out, an array of one entry can take all the memory there is. */
function plainArray(value: readonly unknown[], above: readonly object[]): unknown {
  const names = Object.keys(value);
  const isDense =
    names.length === value.length &&
    names.at(-1) === (value.length === 0 ? undefined : `${value.length - 1}`);
  if (isDense) return value.map((each) => plain(each, above));
  return Object.fromEntries([
    ...Object.entries(value).map(([name, member]) => [name, plain(member, above)] as const),
    ['length', value.length],
  ]);
}
