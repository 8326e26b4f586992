// Finds a name that occurs twice in one JSON object. Parsers differ in which of the two counts, so the text is ambiguous.

/** The first one, if any. The text must be valid JSON. */
export function repeatedName(text: string): string | undefined {
  /** The names of each open object; undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '{') open.push(new Set());
    else if (sign === '[') open.push(undefined);
    else if (sign === '}' || sign === ']') open.pop();
    else if (sign === '"') {
      const start = at;
      at = endOfText(text, start);
      colon.lastIndex = at + 1;
      if (!colon.test(text)) continue;
      const written = text.slice(start + 1, at);
      const name: string = written.includes('\\') ? JSON.parse(`"${written}"`) : written;
      if (open.at(-1)?.has(name)) return name;
      open.at(-1)?.add(name);
    }
  }
  return undefined;
}

const colon = /\s*:/y;

/** The index of the closing quote. */
function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return end;
  }
}
