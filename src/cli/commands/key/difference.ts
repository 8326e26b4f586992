// Where two calls differ, and what is likely to be wrong with that. Pure.

import { suspiciousFields } from '../../../core/contract/fields.ts';
import { canonicalJson } from '../../../core/key/canonical-json.ts';
import { normalisers } from '../../../core/key/normalise.ts';
import { shellWord } from '../../../core/visible.ts';

export interface Difference {
  /** Dotted, as in a contract; empty: the args themselves. */
  readonly path: string;
  /** Undefined: it has none. */
  readonly first: unknown;
  readonly second: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** The fields that differ, as deep as both sides have fields. */
export function differencesOf(first: unknown, second: unknown, path = ''): readonly Difference[] {
  if (isFields(first) && isFields(second)) {
    const names = [...new Set([...Object.keys(first), ...Object.keys(second)])].sort();
    return names.flatMap((name) =>
      differencesOf(own(first, name), own(second, name), path === '' ? name : `${path}.${name}`),
    );
  }
  return same(first, second) ? [] : [{ path, first, second }];
}

/** What may be a mistake about a field of the identity whose values differ; undefined: nothing is known. */
export function hintOf({ path, first, second }: Difference): string | undefined {
  const field = path === '' ? 'it' : path;
  if (first === undefined || second === undefined)
    return `only one of the calls has ${field}. If it is optional, a default in one place and none in the other makes two intents`;
  if (typeof first !== typeof second && String(first) === String(second))
    return `${JSON.stringify(first)} and ${JSON.stringify(second)} are two: a text and a number. Pass one kind everywhere`;
  const normaliser = mergedBy(first, second);
  if (normaliser !== undefined)
    return `they differ in spelling only: --normalize ${shellWord(path)}=${normaliser} makes them one`;
  return freshHint(path, first) ?? freshHint(path, second);
}

/** What looks fresh at each call, or re-worded, by its name or by its value. */
export function freshHint(path: string, value: unknown): string | undefined {
  const kind = freshValue(value);
  if (kind !== undefined)
    return `it looks like ${kind}, which changes with each call: put it into --volatile`;
  if (suspiciousFields({ identity: [path], content: [], volatile: [] }, []).length > 0)
    return 'its name suggests that it changes with every call: put it into --content or --volatile';
  return undefined;
}

function freshValue(value: unknown): string | undefined {
  if (typeof value === 'string') {
    if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)) return 'a random id';
    if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(value)) return 'a timestamp';
    if (/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/i.test(value)) return 'a trace id';
    return undefined;
  }
  const now = Date.now() / 1000;
  const isNear = (seconds: number) => Math.abs(seconds - now) < 366 * 86_400;
  return typeof value === 'number' && (isNear(value) || isNear(value / 1000)) ? 'a timestamp' : undefined;
}

/** Gentle ones first: a normaliser that merges more than it must would merge two intents one day. */
const gentle = ['trim', 'nfc', 'lower', 'email', 'money', 'e164'] as const;

function mergedBy(first: unknown, second: unknown): string | undefined {
  const isAddress = [first, second].every(
    (value) => typeof value === 'string' && /^\S+@\S+$/.test(value.trim()),
  );
  const names = isAddress ? (['email'] as const) : gentle;
  return names.find((name) => {
    try {
      return same(normalisers[name](first, ''), normalisers[name](second, ''));
    } catch {
      return false;
    }
  });
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function same(first: unknown, second: unknown): boolean {
  if (first === undefined || second === undefined) return first === second;
  return canonicalJson(first) === canonicalJson(second);
}
