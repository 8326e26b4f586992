// Refuses unknown fields: a misspelt `identity` would silently make every wording a new intent.

import { type ErrorCode, SemelError } from '../errors.ts';

/** The type makes the list complete: a missing field does not compile. */
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
  return Math.abs(a.length - b.length) <= 2 && isWithin(2, a.toLowerCase(), b.toLowerCase());
}

/** Whether the rest differs in at most `most` letters, in linear time: a server may list thousands of long names. */
function isWithin(most: number, a: string, b: string, aAt = 0, bAt = 0): boolean {
  let [i, j] = [aAt, bAt];
  while (i < a.length && a[i] === b[j]) {
    i += 1;
    j += 1;
  }
  if (i === a.length || j === b.length) return a.length - i + b.length - j <= most;
  if (most === 0) return false;
  // Another letter, one too many, or one too few.
  return (
    isWithin(most - 1, a, b, i + 1, j + 1) ||
    isWithin(most - 1, a, b, i + 1, j) ||
    isWithin(most - 1, a, b, i, j + 1)
  );
}
