// Compares the content of two calls without digests. Only for ordinary args, whose content is text, numbers and other
// scalars; all others are compared by digests.

import type { FieldLists } from '../contract/fields.ts';

export interface Wording {
  /** Content names and values, alternating; undefined: these args are unusual. */
  wordsIn(args: unknown): readonly unknown[] | undefined;
  isSame(args: unknown, words: readonly unknown[]): boolean;
}

/** Undefined: the fields are unusual, or redacted ones must not be kept in memory. */
export function compileWording(
  { identity, content, volatile }: FieldLists,
  redact: readonly string[],
): Wording | undefined {
  const lists = [...(identity ?? []), ...content, ...volatile];
  if (redact.length > 0 || lists.some((path) => path.includes('.'))) return undefined;
  const isContent = contentIn(identity, content, volatile);

  return {
    wordsIn(args) {
      if (typeof args !== 'object' || args === null) return isContent === nothing ? [] : undefined;
      const words: unknown[] = [];
      for (const name of Object.keys(args)) {
        if (!isContent(name)) continue;
        const value = (args as Readonly<Record<string, unknown>>)[name];
        if (!isScalar(value)) return undefined;
        words.push(name, value);
      }
      return words;
    },
    isSame(args, words) {
      if (isContent === nothing) return true;
      if (typeof args !== 'object' || args === null) return false;
      let at = 0;
      for (const name in args) {
        if (!Object.hasOwn(args, name) || !isContent(name)) continue;
        if (words[at] !== name || words[at + 1] !== (args as Readonly<Record<string, unknown>>)[name])
          return false;
        at += 2;
      }
      return at === words.length;
    },
  };
}

type IsContent = (name: string) => boolean;
const nothing: IsContent = () => false;

/** With identity fields, everything else that is not volatile is content. */
function contentIn(
  identity: readonly string[] | undefined,
  content: readonly string[],
  volatile: readonly string[],
): IsContent {
  if (identity === undefined && content.length === 0) return nothing;
  const named = new Set(identity === undefined ? content : [...identity, ...volatile]);
  return identity === undefined ? (name) => named.has(name) : (name) => !named.has(name);
}

/** Immutable, so that comparing by value is enough. */
function isScalar(value: unknown): boolean {
  return value === null || (typeof value !== 'object' && typeof value !== 'function');
}
