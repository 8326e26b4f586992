// Text as a reader can trust it: what cannot be seen, ends a line or turns its direction is spelt out. Names, args and
// errors were written by models, tools and providers, and a terminal obeys what it is sent.

/** Made when it is needed: its character classes take V8 a millisecond, and most commands print nothing. */
const hidden = () => /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu;

/** JSON stays equivalent: `\u001b`, and a pair for a character beyond 16 bits. */
export function escapeInvisible(text: string): string {
  return text.replace(hidden(), (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** As one word of a shell, to be pasted: whatever it holds, the shell reads this value and nothing else. */
export function shellWord(value: string): string {
  if (/^[\w./:@-]+$/.test(value)) return value;
  if (escapeInvisible(value) === value) return `'${value.replaceAll("'", "'\\''")}'`;
  const spelt = value
    .replace(/[\\']/g, '\\$&')
    .replace(hidden(), (character) =>
      [...new TextEncoder().encode(character)]
        .map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`)
        .join(''),
    );
  return `$'${spelt}'`;
}
