// Lists of values as the text that Postgres reads as an array.

export type Value = string | number | null;

/** What JSON escapes and an array of Postgres would read otherwise. */
const oddEscape = /\\[bfnrtu]/;

/** An array is written as a list in JSON is, but for its brackets, and for characters that JSON escapes by a letter. */
export function arrayOf(values: readonly Value[]): string {
  const list = JSON.stringify(values);
  const inside = oddEscape.test(list) ? values.map(elementOf).join(',') : list.slice(1, -1);
  return `{${inside}}`;
}

function elementOf(value: Value): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  // Half of a surrogate pair would be replaced on its way: Postgres refuses this text as it refuses that one.
  const text = value.isWellFormed() ? value : '\0';
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
