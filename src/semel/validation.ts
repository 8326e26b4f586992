// Checks args against the tool's schema, and finds which fields hold just what the schema fills in by itself:
// those are left out of the identity, so that adding an optional arg changes no key.

import { canonicalJson } from '../core/canonical-json.ts';
import type { Contract } from '../core/contract.ts';
import { SemelError } from '../core/errors.ts';
import type { SchemaIssue, StandardSchema } from '../core/standard-schema.ts';

export async function validated(
  schema: StandardSchema,
  input: unknown,
  contract: Contract,
  warnOnce: (message: string) => void = () => undefined,
): Promise<{ args: unknown; defaults: ReadonlySet<string> }> {
  const result = await validate(schema, input, contract);
  if (result.issues !== undefined) throw invalid(contract.name, result.issues);
  const defaults = await defaultsIn(schema, input, result.value, contract, warnOnce);
  return { args: result.value, defaults };
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
  { name: tool, fields }: Contract,
  warnOnce: (message: string) => void,
): Promise<ReadonlySet<string>> {
  const defaults = new Set<string>();
  if (!isFields(input) || !isFields(output)) return defaults;
  const ignored = new Set([...fields.content, ...fields.volatile]);
  let used: readonly string[] | undefined;

  async function probe(path: string): Promise<void> {
    const value = valueAt(output, path);
    if (value === undefined || ignored.has(path)) return;
    const filledIn = await filledInAt(path, path);
    if (valueAt(input, path) === undefined) {
      // Given or not is all that counts: what the schema makes up may be another thing each time.
      if (!same(filledIn, value)) {
        defaults.add(path);
        warnOnce(
          `${tool}: the schema fills \`${path}\` in with something else each time, so it is left out of the identity. Name it in \`volatile\`.`,
        );
      } else if (!(await isMadeOfOthers(path, value))) defaults.add(path);
      return;
    }
    if (same(filledIn, value)) defaults.add(path);
    // What is no object in the input was made into one: nothing in it was left out.
    else if (isFields(value) && isFields(valueAt(input, path)) && path.split('.').length < deepest)
      for (const name of Object.keys(value)) if (!name.includes('.')) await probe(`${path}.${name}`);
  }

  /** A schema that renames puts into one field what was given in another, which the output no longer has. */
  async function isMadeOfOthers(path: string, value: unknown): Promise<boolean> {
    used ??= goneIn(input, output, '');
    for (const given of used) if (!same(await filledInAt(path, given), value)) return true;
    return false;
  }

  /** What the schema puts there if `omitted` is not given. */
  async function filledInAt(path: string, omitted: string): Promise<unknown> {
    try {
      const result = await schema['~standard'].validate(leftOut(input, omitted.split('.')));
      return result.issues === undefined ? valueAt(result.value, path) : undefined;
    } catch {
      return undefined;
    }
  }

  const candidates = fields.identity ?? Object.keys(output).filter((name) => !name.includes('.'));
  for (const path of candidates) await probe(path);
  return defaults;
}

/** What was given and is not in the output under the same name. */
function goneIn(input: unknown, output: unknown, prefix: string): readonly string[] {
  if (!isFields(input) || !isFields(output)) return [];
  return Object.keys(input).flatMap((name) => {
    if (name.includes('.') || input[name] === undefined) return [];
    if (!Object.hasOwn(output, name)) return [`${prefix}${name}`];
    return prefix.split('.').length < deepest ? goneIn(input[name], output[name], `${prefix}${name}.`) : [];
  });
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
