// Text of a ledger was written by models, tools and providers: a terminal must not take it for commands.

/** Control characters are shown, not sent; in JSON text the result means the same. */
export function printable(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** As lines: the only control character that is left is the end of a line. */
export function printableJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2).split('\n').map(printable).join('\n')}\n`;
}
