// Which part of the args is the intent. Identity fields make the key; content fields are what a model may
// re-word (which of them differ is noted on a replay); volatile fields are ignored.

import { canonicalJson } from './canonical-json.ts';
import { encodeResult } from './codec.ts';
import type { FieldLists } from './contract.ts';
import { SemelError } from './errors.ts';
import { contentDigest } from './key.ts';
import { normalisers } from './normalise.ts';

export type Normaliser = keyof typeof normalisers | ((value: unknown) => unknown);

export interface IdentityLimits {
  readonly maxDepth: number;
  readonly maxBytes: number;
}

/** Canonical JSON of the identity args. `defaults` are the fields that hold what the schema would fill in. */
export function identityOf(
  args: unknown,
  fields: FieldLists,
  normalize: Readonly<Record<string, Normaliser>>,
  limits: IdentityLimits,
  defaults: ReadonlySet<string> = new Set(),
): string {
  const picked =
    fields.identity === undefined
      ? without(args, [...fields.content, ...fields.volatile])
      : isObject(args)
        ? pick(args, fields.identity)
        : args;
  if (
    isObject(picked) &&
    isObject(args) &&
    Object.keys(picked).length === 0 &&
    Object.keys(args).length > 0
  ) {
    throw new SemelError(
      'INVALID_ARGS',
      'None of the identity fields is in the args: every such call would be one.',
      {
        path: 'args',
        next: `Pass at least one of ${(fields.identity ?? []).join(', ') || 'the identity fields'}.`,
      },
    );
  }
  const explicit = defaults.size === 0 ? picked : without(picked, [...defaults]);
  return canonicalJson(normalised(explicit, normalize), { path: 'args', ...limits });
}

/** One digest per content field, as `field=digest` pairs; null where the contract has no content. */
export function contentOf(key: string, args: unknown, fields: FieldLists): string | null {
  const digests: Record<string, string> = {};
  for (const [path, value] of contentFields(args, fields)) {
    if (value === undefined) continue;
    const encoded = encodedContent(value);
    if (encoded !== undefined) digests[path] = contentDigest(key, path, encoded);
  }
  return Object.keys(digests).length === 0 ? null : JSON.stringify(digests);
}

/** The order of members is no wording; content that is no JSON is compared as the codec writes it. */
function encodedContent(value: unknown): string | undefined {
  try {
    return canonicalJson(value, { maxBytes: Number.MAX_SAFE_INTEGER });
  } catch {
    const encoded = encodeResult(value, { maxBytes: Number.MAX_SAFE_INTEGER });
    return encoded.ok ? encoded.text : undefined;
  }
}

/** The content fields whose wording differs from what was stored. */
export function driftOf(stored: string | null, current: string | null): readonly string[] {
  if (stored === null && current === null) return [];
  const first = JSON.parse(stored ?? '{}') as Record<string, string>;
  const now = JSON.parse(current ?? '{}') as Record<string, string>;
  return [...new Set([...Object.keys(first), ...Object.keys(now)])]
    .filter((path) => first[path] !== now[path])
    .sort();
}

function contentFields(args: unknown, { identity, content, volatile }: FieldLists): [string, unknown][] {
  if (!isObject(args)) return [];
  if (identity === undefined) return content.map((path) => [path, at(args, path)]);
  return others(args, [...identity, ...volatile], '');
}

/** Every field that is not named, as high up as none of the named ones is inside it. */
function others(value: Fields, named: readonly string[], prefix: string): [string, unknown][] {
  return Object.keys(value)
    .filter((name) => !named.includes(name))
    .flatMap((name) => {
      const deeper = inside(named, name);
      const field = value[name];
      return deeper.length > 0 && isObject(field)
        ? others(field, deeper, `${prefix}${name}.`)
        : [[`${prefix}${name}`, field] as [string, unknown]];
    });
}

/** The fields are cut out, not blanked: what is stored must show that something is missing. */
export function redacted(args: unknown, paths: readonly string[]): unknown {
  return without(args, paths);
}

type Fields = Record<string, unknown>;

/** Plain objects only: a Map or a class instance must reach canonical JSON as it is, and be refused there. */
function isObject(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (found, name) => (isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined),
      value,
    );
}

function pick(args: Fields, paths: readonly string[]): Fields {
  const picked: Fields = Object.create(null);
  for (const path of paths) {
    const value = at(args, path);
    if (value !== undefined) place(picked, path.split('.'), value);
  }
  return picked;
}

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
  if (paths.length === 0 || !isObject(value)) return value;
  const cut = new Set(paths.filter((path) => !path.includes('.')));
  const rest = Object.keys(value).filter((name) => !cut.has(name));
  // fromEntries makes own members of all names, `__proto__` too.
  return Object.fromEntries(rest.map((name) => [name, without(value[name], inside(paths, name))]));
}

function inside(paths: readonly string[], name: string): readonly string[] {
  return paths.filter((path) => path.startsWith(`${name}.`)).map((path) => path.slice(name.length + 1));
}

function normalised(value: unknown, normalize: Readonly<Record<string, Normaliser>>): unknown {
  const paths = Object.keys(normalize);
  if (paths.length === 0 || !isObject(value)) return value;
  let result = value;
  for (const path of paths) {
    const found = at(result, path);
    if (found === undefined) continue;
    const normaliser = normalize[path] as Normaliser;
    const better =
      typeof normaliser === 'function' ? normaliser(found) : normalisers[normaliser](found, `args.${path}`);
    result = replaced(result, path.split('.'), better);
  }
  return result;
}

function replaced(value: Fields, [name, ...rest]: readonly string[], by: unknown): Fields {
  const copy: Fields = Object.assign(Object.create(null), value);
  if (name !== undefined) copy[name] = rest.length === 0 ? by : replaced(value[name] as Fields, rest, by);
  return copy;
}
