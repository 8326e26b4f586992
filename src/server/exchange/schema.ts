// Small schemas that check what a client sends, and describe themselves as JSON Schema: the OpenAPI document cannot say
// anything else than what is checked.

import { checkKnown } from '../../core/contract/known-fields.ts';
import { SemelError } from '../../core/errors.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Schema<Value> {
  readonly json: JsonSchema;
  /** The value, or INVALID_ARGS with its place. */
  read(value: unknown, path: string): Value;
}

export type Read<Of> = Of extends Schema<infer Value> ? Value : never;

interface About {
  readonly about?: string;
}

const described = ({ about }: About): JsonSchema => (about === undefined ? {} : { description: about });

function refuse(path: string, expected: string): never {
  const name = path === '' ? 'The body' : `\`${path}\``;
  throw new SemelError('INVALID_ARGS', `${name} is not ${expected}.`, {
    ...(path === '' ? {} : { path }),
    next: `Send ${expected}.`,
  });
}

export function text(
  options: About & {
    readonly max?: number;
    readonly pattern?: RegExp;
    readonly example?: string;
    /** A target's words, stored as data: a report must not fail because of them. */
    readonly isForeign?: boolean;
  } = {},
): Schema<string> {
  const { max = 1_000, pattern, example, isForeign = false } = options;
  const expected = example === undefined ? `a text of 1 to ${max} characters` : `a text such as ${example}`;
  return {
    json: {
      type: 'string',
      minLength: 1,
      maxLength: max,
      ...(pattern === undefined ? {} : { pattern: pattern.source }),
      ...(example === undefined ? {} : { examples: [example] }),
      ...described(options),
    },
    read(value, path) {
      if (typeof value !== 'string' || value === '' || value.length > max) return refuse(path, expected);
      // Postgres refuses NUL and halves of surrogate pairs, and clients would be told that the store failed.
      if (!isForeign && (controls.test(value) || !value.isWellFormed()))
        return refuse(path, 'a text without control characters or halves of surrogate pairs');
      return pattern === undefined || pattern.test(value) ? value : refuse(path, expected);
    },
  };
}

/** All but tab and line breaks. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for.
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

export function integer(options: About & { readonly min: number; readonly max: number }): Schema<number> {
  const { min, max } = options;
  return {
    json: { type: 'integer', minimum: min, maximum: max, ...described(options) },
    read(value, path) {
      const isFit = Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
      return isFit ? (value as number) : refuse(path, `an integer from ${min} to ${max}`);
    },
  };
}

export function flag(options: About = {}): Schema<boolean> {
  return {
    json: { type: 'boolean', ...described(options) },
    read: (value, path) => (typeof value === 'boolean' ? value : refuse(path, 'true or false')),
  };
}

export function oneOf<const Word extends string>(words: readonly Word[], options: About = {}): Schema<Word> {
  const expected = words.map((word) => JSON.stringify(word)).join(' or ');
  return {
    json: { enum: words, ...described(options) },
    read: (value, path) => (words.includes(value as Word) ? (value as Word) : refuse(path, expected)),
  };
}

/** Any JSON value. */
export function anything(options: About = {}): Schema<unknown> {
  return { json: { ...described(options) }, read: (value) => value };
}

/** An instant as ISO text, or in milliseconds. */
export function instant(options: About = {}): Schema<number> {
  const expected = 'an instant such as "2026-11-18T09:00:00Z"';
  return {
    json: { type: 'string', format: 'date-time', ...described(options) },
    read(value, path) {
      // Without an offset it would be a different instant on each machine.
      const isWhole =
        typeof value === 'string' &&
        /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(value);
      const at = isWhole ? Date.parse(value) : Number.NaN;
      return Number.isNaN(at) ? refuse(path, expected) : at;
    },
  };
}

export function list<Item>(
  item: Schema<Item>,
  options: About & { readonly max: number },
): Schema<readonly Item[]> {
  const { max } = options;
  return {
    json: { type: 'array', items: item.json, minItems: 1, maxItems: max, ...described(options) },
    read(value, path) {
      if (!Array.isArray(value) || value.length === 0 || value.length > max)
        return refuse(path, `a list of 1 to ${max} items`);
      return value.map((each, at) => item.read(each, `${path}[${at}]`));
    },
  };
}

/** For a document that another part of semel checks. */
export function document<Value>(
  json: JsonSchema,
  check: (value: object, path: string) => Value,
): Schema<Value> {
  return {
    json,
    read(value, path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return refuse(path, 'an object');
      return check(value, path);
    },
  };
}

type Fields = Readonly<Record<string, Schema<unknown>>>;
type ReadFields<Of extends Fields> = { readonly [Name in keyof Of]: Read<Of[Name]> };

/** Unknown fields are refused: a misspelt one would change what a call means. */
export function object<const Required extends Fields, const Optional extends Fields = Record<never, never>>(
  required: Required,
  optional: Optional = {} as Optional,
  options: About = {},
): Schema<ReadFields<Required> & Partial<ReadFields<Optional>>> & { readonly fields: Required & Optional } {
  const fields: Fields = { ...required, ...optional };
  const names = new Set(Object.keys(fields));
  return {
    fields: fields as Required & Optional,
    json: {
      type: 'object',
      properties: Object.fromEntries(Object.entries(fields).map(([name, { json }]) => [name, json])),
      required: Object.keys(required),
      additionalProperties: false,
      ...described(options),
    },
    read(value, path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        return refuse(path, 'an object');
      checkKnown(path === '' ? 'The request' : path, value, names, 'INVALID_ARGS');
      const read: Record<string, unknown> = {};
      for (const [name, schema] of Object.entries(fields)) {
        const place = path === '' ? name : `${path}.${name}`;
        const given = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
        if (given !== undefined) read[name] = schema.read(given, place);
        else if (Object.hasOwn(required, name))
          throw new SemelError('INVALID_ARGS', `\`${place}\` is missing.`, {
            path: place,
            next: 'Send it.',
          });
      }
      return read as ReadFields<Required> & Partial<ReadFields<Optional>>;
    },
  };
}
