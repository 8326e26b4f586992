// A compiled `deriveIdentity` for one contract: sorts and quotes its names once, and reads the args member by member.
// Handles ordinary args only and leaves everything unusual, and every refusal, to `deriveIdentity`; both give the same
// text.

import type { FieldLists } from '../contract/fields.ts';
import { visibleSymbol } from '../plain.ts';
import { canonicalJson, scalarJson } from './canonical-json.ts';
import {
  deriveIdentity,
  type IdentityLimits,
  type LeftOut,
  type Normaliser,
  nothingLeftOut,
} from './identity.ts';

/** Canonical JSON of the identity args. */
export type IdentityText = (args: unknown, leftOut?: LeftOut) => string;

export function compileIdentity(
  fields: FieldLists,
  normalize: Readonly<Record<string, Normaliser>>,
  limits: IdentityLimits,
): IdentityText {
  const write = writerFor(fields, normalize, limits);
  return (args, leftOut = nothingLeftOut) =>
    write?.(args, leftOut) ?? deriveIdentity(args, fields, normalize, limits, leftOut);
}

/** Undefined: unusual. */
type Writer = (args: unknown, leftOut: LeftOut) => string | undefined;

interface Name {
  readonly name: string;
  /** `"name":` */
  readonly quoted: string;
}

function writerFor(
  { identity, content, volatile }: FieldLists,
  normalize: Readonly<Record<string, Normaliser>>,
  { maxDepth, maxBytes }: IdentityLimits,
): Writer | undefined {
  const isOrdinary = [...(identity ?? []), ...content, ...volatile].every(isPlainName);
  if (!isOrdinary || maxDepth < 1 || maxBytes < 2 || Object.keys(normalize).length > 0) return undefined;
  const inner = { maxDepth: maxDepth - 1, maxBytes };
  const picked = identity && [...new Set(identity)].sort().map(quotedName);
  const skipped = new Set([...content, ...volatile]);
  const namesIn = picked === undefined ? sortedNames(skipped) : undefined;

  return (args, { constant, fresh }) => {
    let text = '';
    /** Only empty objects so far, which may count as no identity at all. */
    let isBare = true;
    try {
      if (typeof args !== 'object' || args === null || Object.getPrototypeOf(args) !== Object.prototype)
        return undefined;
      const names = picked ?? namesIn?.(args);
      if (names === undefined) return undefined;
      for (const { name, quoted } of names) {
        const value = (args as Readonly<Record<string, unknown>>)[name];
        if (value === undefined) continue;
        if (!Object.hasOwn(args, name)) return undefined;
        if (fresh.length > 0 && isNamed(name, fresh)) continue;
        const written = textOf(value, inner);
        if (written === undefined) return undefined;
        if (isBare) isBare = written.endsWith('{}}') || written === '{}';
        if (constant.length > 0 && isNamed(name, constant)) continue;
        text += text === '' ? `{${quoted}${written}` : `,${quoted}${written}`;
      }
    } catch {
      // A getter threw, or something inside is refused: `deriveIdentity` reports it with its path.
      return undefined;
    }
    if (isBare || text.length >= maxBytes || !areNames(constant) || !areNames(fresh)) return undefined;
    return text === '' ? '{}' : `${text}}`;
  };
}

/** The identity members, sorted. Cached, since most calls of a tool have the same members as the last. */
function sortedNames(skipped: ReadonlySet<string>): (args: object) => readonly Name[] | undefined {
  let last: readonly string[] = [];
  let names: readonly Name[] = [];
  return (args) => {
    if (visibleSymbol(args) !== undefined || 'toJSON' in args) return undefined;
    const keys = Object.keys(args);
    if (keys.length === last.length && keys.every((key, at) => key === last[at])) return names;
    if (keys.length > 32 || !keys.every((key) => isQuotable(key) && key !== '__proto__')) return undefined;
    last = keys;
    names = keys
      .filter((key) => !skipped.has(key))
      .sort()
      .map(quotedName);
    return names;
  };
}

function quotedName(name: string): Name {
  return { name, quoted: `${JSON.stringify(name)}:` };
}

/** Names one own member of the args: not a dotted path, and not inherited like `constructor`. */
function isPlainName(name: string): boolean {
  return !name.includes('.') && !(name in Object.prototype) && isQuotable(name);
}

function isQuotable(name: string): boolean {
  return name.isWellFormed();
}

const isNamed = (name: string, fields: LeftOut['fresh']) => fields.some((steps) => steps[0] === name);
const areNames = (fields: LeftOut['fresh']) => fields.every((steps) => steps.length === 1);

function textOf(value: unknown, limits: IdentityLimits): string | undefined {
  return typeof value === 'object' && value !== null ? canonicalJson(value, limits) : scalarJson(value);
}
