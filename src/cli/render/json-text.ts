// Any stored value as JSON: a ledger keeps more kinds than JSON has, and none may stop a list from being printed. Big
// integers become strings, bytes base64, and a sparse array an object of its entries.

/** Deeper values are cut, since the stack is limited. */
const maxDepth = 200;

export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(toPlain(value, []), null, indent) ?? String(value);
}

function toPlain(value: unknown, above: readonly object[]): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'symbol' || typeof value === 'function') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[circular]';
  if (above.length >= maxDepth) return '[deeper]';
  try {
    return plainObject(value, [...above, value]);
  } catch {
    return '[unreadable]';
  }
}

function plainObject(value: object, above: readonly object[]): unknown {
  if (Array.isArray(value)) return plainArray(value, above);
  if (value instanceof Map) return [...value].map((entry) => toPlain(entry, above));
  if (value instanceof Set) return [...value].map((each) => toPlain(each, above));
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString('base64');
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  if (value instanceof RegExp) return String(value);
  if ('toJSON' in value && typeof value.toJSON === 'function') return toPlain(value.toJSON(), above);
  const shown = Object.entries(value).map(([name, member]) => [name, toPlain(member, above)] as const);
  const named = value instanceof Error ? [['message', value.message] as const, ...shown] : shown;
  // Not by assignment: a member may be named __proto__.
  return Object.fromEntries(named);
}

/** Without holes: written out, an array of one entry could fill the memory. */
function plainArray(value: readonly unknown[], above: readonly object[]): unknown {
  const names = Object.keys(value);
  const isDense =
    names.length === value.length &&
    names.at(-1) === (value.length === 0 ? undefined : `${value.length - 1}`);
  if (isDense) return value.map((each) => toPlain(each, above));
  return Object.fromEntries([
    ...Object.entries(value).map(([name, member]) => [name, toPlain(member, above)] as const),
    ['length', value.length],
  ]);
}
