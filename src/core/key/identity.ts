// Which part of the args is the intent. Identity fields make the key; a model may re-word content fields (a replay reports
// which differ); volatile fields are ignored.

import { encodeResult } from '../codec/codec.ts';
import type { FieldLists } from '../contract/fields.ts';
import { SemelError } from '../errors.ts';
import { isPlainPrototype } from '../plain.ts';
import { canonicalJson, scalarJson } from './canonical-json.ts';
import { contentDigest } from './key.ts';
import { normalisers } from './normalise.ts';

export type Normaliser = keyof typeof normalisers | ((value: unknown) => unknown);

export interface IdentityLimits {
  readonly maxDepth: number;
  readonly maxBytes: number;
}

/** The names on the path from the args to one field. */
export type Steps = readonly string[];

/** Fields that a schema fills in. */
export interface LeftOut {
  /** Constant defaults. */
  readonly constant: readonly Steps[];
  /** Generated for each call. */
  readonly fresh: readonly Steps[];
}

/** Canonical JSON of the identity args. */
export function deriveIdentity(
  args: unknown,
  fields: FieldLists,
  normalize: Readonly<Record<string, Normaliser>>,
  limits: IdentityLimits,
  { constant, fresh }: LeftOut = nothingLeftOut,
): string {
  const picked = omitFields(identityPart(args, fields), fresh);
  if (picked !== args && isEmptied(picked, args)) {
    throw new SemelError(
      'INVALID_ARGS',
      'None of the identity fields is in the args, so every call would count as the same.',
      {
        path: 'args',
        next: `Pass at least one of ${(fields.identity ?? []).join(', ') || 'the identity fields'}.`,
      },
    );
  }
  // Also without a parent object that has only defaults: a caller that omits the arg has no such object either.
  const given = constant.length === 0 ? picked : omitFields(identityPart(args, fields, constant), fresh);
  return canonicalJson(applyNormalisers(omitFields(given, constant), normalize), limits);
}

export const nothingLeftOut: LeftOut = { constant: [], fresh: [] };

/** Everything was removed from an object that was not empty. */
function isEmptied(part: unknown, whole: unknown): boolean {
  if (!isObject(part) || !isObject(whole) || Object.keys(whole).length === 0) return false;
  return Object.keys(part).every((name) => part[name] === undefined || isEmptied(part[name], whole[name]));
}

function identityPart(
  args: unknown,
  { identity, content, volatile }: FieldLists,
  constant: readonly Steps[] = [],
): unknown {
  if (identity !== undefined) return isObject(args) ? pick(args, identity, constant) : args;
  // Most contracts name no fields at all.
  return content.length === 0 && volatile.length === 0 ? args : without(args, [...content, ...volatile]);
}

/** JSON with one digest per content field; null if the contract has no content. `whole`: the args before they were redacted. */
export function digestContent(
  key: string,
  args: unknown,
  fields: FieldLists,
  whole: unknown = args,
): string | null {
  if (fields.identity === undefined && fields.content.length === 0) return null;
  const digests: Record<string, string> = {};
  for (const [path, value] of contentFields(args, fields)) {
    if (value === undefined) continue;
    const encoded = encodedContent(value);
    if (encoded === tooLarge) digests[path] = tooLarge;
    else if (encoded !== undefined) digests[path] = contentDigest(key, path, encoded);
  }
  if (whole !== args)
    for (const [path, value] of contentFields(whole, fields))
      if (value !== undefined && !(isObject(args) && at(args, path) === value)) digests[path] = redacted;
  return Object.keys(digests).length === 0 ? null : JSON.stringify(digests);
}

/** Marks content that is too large to compare; it always counts as different. */
const tooLarge = 'too large';
/** Marks content that leaves no trace: nobody can say that two wordings are the same. */
const redacted = 'redacted';
const maxContentBytes = 262_144;

/** Canonical, so that the order of members does not count; content that is not JSON is compared as the codec writes it. */
function encodedContent(value: unknown): string | undefined {
  // The length of a text is known; a small graph of shared references can make an endless one.
  if (typeof value === 'string' && value.length > maxContentBytes) return `text:${value}`;
  const scalar = scalarJson(value);
  if (scalar !== undefined && scalar.length <= maxContentBytes) return scalar;
  try {
    return canonicalJson(value, { maxBytes: maxContentBytes });
  } catch {
    const encoded = encodeResult(value, { maxBytes: maxContentBytes });
    if (encoded.ok) return encoded.text;
    return encoded.reason === 'too-large' ? tooLarge : undefined;
  }
}

/** Surely worded the same. */
export function isSameContent(stored: string | null, current: string | null): boolean {
  return stored === current && stored?.includes(tooLarge) !== true && !isRedacted(stored);
}

/** Other content may look the same. */
export function isRedacted(content: string | null): boolean {
  return content?.includes(`:"${redacted}"`) === true;
}

/** The content fields that differ from what was stored. */
export function findDrift(stored: string | null, current: string | null): readonly string[] {
  // The usual case, at every replay: no need to parse.
  if (isSameContent(stored, current)) return [];
  const first = JSON.parse(stored ?? '{}') as Record<string, string>;
  const now = JSON.parse(current ?? '{}') as Record<string, string>;
  return [...new Set([...Object.keys(first), ...Object.keys(now)])]
    .filter((path) => first[path] !== now[path] || now[path] === tooLarge)
    .sort();
}

/** The fields that are content in these args. */
export function contentPaths(args: unknown, fields: FieldLists): readonly string[] {
  return contentFields(args, fields).map(([path]) => path);
}

function contentFields(args: unknown, { identity, content, volatile }: FieldLists): [string, unknown][] {
  if (!isObject(args)) return [];
  if (identity === undefined) return content.map((path) => [path, at(args, path)]);
  // The usual case, at every claim: no dotted names.
  if (!identity.some(isDotted) && !volatile.some(isDotted)) {
    const found: [string, unknown][] = [];
    for (const name of Object.keys(args))
      if (!identity.includes(name) && !volatile.includes(name)) found.push([name, args[name]]);
    return found;
  }
  const named = [...identity, ...volatile].map((path) => findSteps(args, path));
  return listOthers(
    args,
    named.filter((steps) => steps !== undefined),
    '',
  );
}

const isDotted = (path: string) => path.includes('.');

/** Every field that is not named; an object that contains named fields is split into its members. */
function listOthers(value: Fields, named: readonly Steps[], prefix: string): [string, unknown][] {
  return Object.keys(value).flatMap((name): [string, unknown][] => {
    const deeper = named.filter((steps) => steps[0] === name).map((steps) => steps.slice(1));
    if (deeper.some((steps) => steps.length === 0)) return [];
    const field = value[name];
    return deeper.length > 0 && isObject(field)
      ? listOthers(field, deeper, `${prefix}${name}.`)
      : [[`${prefix}${name}`, field]];
  });
}

/** Removes the fields instead of blanking them: what is stored must show that something is missing. */
export function redactPaths(args: unknown, paths: readonly string[]): unknown {
  return cutOut(args, paths, { left: 100_000 }, 0);
}

/** Also in every element of a list. What cannot be read, or is too large, is removed whole. */
function cutOut(value: unknown, paths: readonly string[], budget: { left: number }, depth: number): unknown {
  if (paths.length === 0 || typeof value !== 'object' || value === null) return value;
  budget.left -= 1;
  if (budget.left < 0 || depth > 64) return undefined;
  const inner = (member: unknown, deeper: readonly string[]) => cutOut(member, deeper, budget, depth + 1);
  if (Array.isArray(value)) return value.map((item) => inner(item, paths));
  if (!isObject(value)) return undefined;
  const rest = Object.keys(value).filter((name) => !paths.includes(name));
  return Object.fromEntries(rest.map((name) => [name, inner(value[name], inside(paths, name))]));
}

/** The paths that do not exist in these args: optional fields, or misspelt ones. */
export function findMissingPaths(args: unknown, paths: readonly string[]): readonly string[] {
  return isObject(args) ? paths.filter((path) => findSteps(args, path) === undefined) : [];
}

/** The field that a missing path may have meant: equal except for case, dashes and underscores. */
export function suggestPath(args: unknown, path: string): string | undefined {
  const items: unknown[] = Array.isArray(args) ? args.slice(0, 3) : [args];
  for (const item of items.filter(isObject)) {
    for (const name of Object.keys(item)) {
      if (path === name) return undefined;
      if (plainly(path) === plainly(name)) return name;
      const head = [...path.matchAll(/\./g)]
        .map(({ index }) => path.slice(0, index))
        .find((each) => plainly(each) === plainly(name));
      if (head === undefined) continue;
      const rest = path.slice(head.length + 1);
      const meant = suggestPath(item[name], rest) ?? (head === name ? undefined : rest);
      if (meant !== undefined) return `${name}.${meant}`;
    }
  }
  return undefined;
}

function plainly(name: string): string {
  return name.replace(/[-_]/g, '').toLowerCase();
}

type Fields = Record<string, unknown>;

/** Plain objects only: canonical JSON must see a Map or a class instance, and refuse it. */
function isObject(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  return !Array.isArray(value) && isPlainPrototype(Object.getPrototypeOf(value));
}

/** The names on the path to a field. A name that contains the dot itself takes precedence. */
export function findSteps(value: unknown, path: string): Steps | undefined {
  if (!isObject(value)) return undefined;
  if (Object.hasOwn(value, path)) return [path];
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot);
    if (!Object.hasOwn(value, name)) continue;
    const rest = findSteps(value[name], path.slice(dot + 1));
    if (rest !== undefined) return [name, ...rest];
  }
  return undefined;
}

function at(value: unknown, path: string): unknown {
  return follow(value, findSteps(value, path));
}

function follow(value: unknown, steps: readonly string[] | undefined): unknown {
  return steps?.reduce<unknown>((found, name) => (found as Fields)[name], value);
}

function pick(args: Fields, paths: readonly string[], except: readonly Steps[]): Fields {
  const picked: Fields = Object.create(null);
  for (const path of paths) {
    const steps = findSteps(args, path);
    const value = follow(args, steps);
    if (steps === undefined || value === undefined || except.some((each) => isSamePath(each, steps)))
      continue;
    place(picked, steps, value);
  }
  return picked;
}

const isSamePath = (a: Steps, b: Steps) => a.length === b.length && a.every((name, at) => name === b[at]);

function place(target: Fields, [name, ...rest]: readonly string[], value: unknown): void {
  if (name === undefined) return;
  if (rest.length === 0) {
    target[name] = value;
    return;
  }
  const inner = isObject(target[name]) ? target[name] : Object.create(null);
  target[name] = inner;
  place(inner, rest, value);
}

function without(value: unknown, paths: readonly string[]): unknown {
  return omitFields(
    value,
    paths.map((path) => findSteps(value, path)).filter((steps) => steps !== undefined),
  );
}

function omitFields(value: unknown, fields: readonly Steps[]): unknown {
  if (fields.length === 0 || !isObject(value)) return value;
  const rest = Object.keys(value).filter(
    (name) => !fields.some((steps) => steps.length === 1 && steps[0] === name),
  );
  // fromEntries makes every name an own member, even `__proto__`.
  return Object.fromEntries(
    rest.map((name) => {
      const deeper = fields.filter((steps) => steps[0] === name).map((steps) => steps.slice(1));
      return [name, omitFields(value[name], deeper)];
    }),
  );
}

function inside(paths: readonly string[], name: string): readonly string[] {
  return paths.filter((path) => path.startsWith(`${name}.`)).map((path) => path.slice(name.length + 1));
}

function applyNormalisers(value: unknown, normalize: Readonly<Record<string, Normaliser>>): unknown {
  const paths = Object.keys(normalize);
  if (paths.length === 0 || !isObject(value)) return value;
  let result = value;
  for (const path of paths) {
    const steps = findSteps(result, path);
    const found = follow(result, steps);
    if (steps === undefined || found === undefined) continue;
    const normaliser = normalize[path] as Normaliser;
    const better =
      typeof normaliser === 'function' ? normaliser(found) : normalisers[normaliser](found, `args.${path}`);
    if (better === undefined) {
      throw new SemelError('INVALID_ARGS', `The normaliser of \`${path}\` returned undefined.`, {
        path: `args.${path}`,
        next: 'Pass a value that it accepts, or let it return one.',
      });
    }
    result = replaceAt(result, steps, better);
  }
  return result;
}

function replaceAt(value: Fields, [name, ...rest]: readonly string[], by: unknown): Fields {
  const copy: Fields = Object.assign(Object.create(null), value);
  if (name !== undefined) copy[name] = rest.length === 0 ? by : replaceAt(value[name] as Fields, rest, by);
  return copy;
}
