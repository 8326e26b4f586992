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
  const result = await schema['~standard'].validate(input);
  if (result.issues !== undefined) throw invalid(contract.name, result.issues);
  return { args: result.value, defaults: await defaultsIn(schema, input, result.value, contract) };
}

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
  const candidates = fields.identity ?? Object.keys(output).filter((field) => !ignored.has(field));
  for (const field of candidates) {
    if (field.includes('.') || output[field] === undefined) continue;
    const { [field]: _left, ...rest } = input;
    const probe = await schema['~standard'].validate(rest);
    if (probe.issues === undefined && isFields(probe.value) && same(probe.value[field], output[field]))
      defaults.add(field);
  }
  return defaults;
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
