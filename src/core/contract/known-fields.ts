// Refuses a field that nobody reads: a misspelt `identity` would silently make every wording a new intent.

import { type ErrorCode, SemelError } from '../errors.ts';

/** Complete by its type: a field that is missing in the list does not compile. */
export function fieldNames<T>(fields: Record<keyof T, true>): ReadonlySet<string> {
  return new Set(Object.keys(fields));
}

export function checkKnown(
  what: string,
  given: object,
  known: ReadonlySet<string>,
  code: ErrorCode = 'CONTRACT_INVALID',
): void {
  for (const field of listUnknown(given, known)) refuse(what, field, findSimilar(known, field), code);
}

/**
 * For what a framework may pass on, with fields of its own: only what somebody seems to have meant for us is refused.
 * `aliases` are names that others have for our fields.
 */
export function checkMeant(
  what: string,
  given: object,
  known: ReadonlySet<string>,
  aliases: Readonly<Record<string, string>>,
  code: ErrorCode,
): void {
  for (const field of listUnknown(given, known)) {
    const meant = Object.hasOwn(aliases, field) ? aliases[field] : findSimilar(known, field);
    if (meant !== undefined) refuse(what, field, meant, code);
  }
}

function listUnknown(given: object, known: ReadonlySet<string>): readonly string[] {
  let unknown: string[] | undefined;
  for (const field of Object.keys(given)) {
    if (known.has(field) || (given as Record<string, unknown>)[field] === undefined) continue;
    unknown ??= [];
    unknown.push(field);
  }
  return unknown ?? nothing;
}

const nothing: readonly string[] = [];

/** The name that somebody seems to have meant. */
export function findSimilar(known: Iterable<string>, name: string): string | undefined {
  return [...known].find((each) => isNear(each, name));
}

function refuse(what: string, field: string, meant: string | undefined, code: ErrorCode): never {
  throw new SemelError(code, `${what}: there is no field \`${field}\`.`, {
    path: field,
    next: meant === undefined ? 'Remove it.' : `Did you mean \`${meant}\`?`,
  });
}

/** The same but for one or two letters. */
function isNear(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 2) return false;
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1]?.toLowerCase() === b[j - 1]?.toLowerCase();
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1)));
    }
    row = next;
  }
  return (row[b.length] ?? 0) <= 2;
}
