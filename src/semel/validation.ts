// Checks args against the tool's schema, and finds which fields hold just what the schema would have filled in:
// those are left out of the identity, so that adding an optional arg changes no key.

import { canonicalJson } from '../core/canonical-json.ts';
import type { Contract } from '../core/contract.ts';
import { SemelError } from '../core/errors.ts';
import type { SchemaIssue, StandardSchema } from '../core/standard-schema.ts';

export async function validated(
  schema: StandardSchema,
  input: unknown,
  contract: Contract,
): Promise<{ args: unknown; defaults: ReadonlySet<string> }> {
  const result = await validate(schema, input, contract);
  if (result.issues !== undefined) throw invalid(contract.name, result.issues);
  return { args: result.value, defaults: await defaultsIn(schema, input, result.value, contract) };
}

/** A schema may also throw, by its own transforms: then the args do not fit it either. */
async function validate(schema: StandardSchema, input: unknown, { name }: Contract) {
  try {
    return await schema['~standard'].validate(input);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new SemelError('INVALID_ARGS', `${name}: its schema threw on these args (${message}).`, {
      path: 'args',
      cause,
    });
  }
}

const deepest = 4;

/** Judged anew for each call, from this call alone: every process must come to the same key. */
async function defaultsIn(
  schema: StandardSchema,
  input: unknown,
  output: unknown,
  { fields }: Contract,
): Promise<ReadonlySet<string>> {
  const defaults = new Set<string>();
  if (!isFields(input) || !isFields(output)) return defaults;
  const ignored = new Set([...fields.content, ...fields.volatile]);

  async function probe(path: string): Promise<void> {
    const value = valueAt(output, path);
    if (value === undefined || ignored.has(path)) return;
    const filledIn = await withoutField(path);
    if (filledIn !== undefined && same(filledIn, value)) defaults.add(path);
    else if (isFields(value) && path.split('.').length < deepest)
      for (const name of Object.keys(value)) if (!name.includes('.')) await probe(`${path}.${name}`);
  }

  /** What the schema puts there if nothing is given. */
  async function withoutField(path: string): Promise<unknown> {
    try {
      const result = await schema['~standard'].validate(leftOut(input, path.split('.')));
      return result.issues === undefined ? valueAt(result.value, path) : undefined;
    } catch {
      return undefined;
    }
  }

  const candidates = fields.identity ?? Object.keys(output).filter((name) => !name.includes('.'));
  for (const path of candidates) await probe(path);
  return defaults;
}

function valueAt(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split('.'))
    found = isFields(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

function leftOut(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined || !isFields(value) || !Object.hasOwn(value, name)) return value;
  const { [name]: inner, ...others } = value;
  return rest.length === 0 ? others : { ...others, [name]: leftOut(inner, rest) };
}

function same(a: unknown, b: unknown): boolean {
  if (a === undefined) return false;
  try {
    return canonicalJson(a) === canonicalJson(b);
  } catch {
    return false;
  }
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(name: string, issues: readonly SchemaIssue[]): SemelError {
  const shown = issues.slice(0, 3).map((issue) => `${pathOf(issue)}: ${issue.message}`);
  return new SemelError('INVALID_ARGS', `${name}: the args do not fit its schema (${shown.join('; ')}).`, {
    path: issues[0] === undefined ? 'args' : pathOf(issues[0]),
  });
}

function pathOf({ path }: SchemaIssue): string {
  let text = 'args';
  for (const part of path ?? []) {
    const key = typeof part === 'object' ? part.key : part;
    text += typeof key === 'number' ? `[${key}]` : `.${String(key)}`;
  }
  return text;
}
