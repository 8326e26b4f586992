// The headers of a request as pairs, however they are kept. Not by their class: `Headers` of undici, of node-fetch or of
// another realm are not the global one, and read as a plain object they would be empty.

export function headerEntries(headers: unknown): readonly (readonly [string, unknown])[] {
  if (typeof headers !== 'object' || headers === null) return [];
  const pairs = isIterable(headers) ? [...headers] : eachOf(headers);
  return pairs.map((pair) => {
    const [name, value] = pair as [unknown, unknown];
    return [String(name).toLowerCase(), value];
  });
}

function isIterable(value: object): value is Iterable<unknown> {
  return Symbol.iterator in value;
}

/** Some implementations know `forEach` alone. */
function eachOf(headers: object): readonly unknown[] {
  if (!('forEach' in headers) || typeof headers.forEach !== 'function') return Object.entries(headers);
  const pairs: unknown[] = [];
  headers.forEach((value: unknown, name: unknown) => {
    pairs.push([name, value]);
  });
  return pairs;
}
