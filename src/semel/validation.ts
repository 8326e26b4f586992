// Checks args against the tool's schema, and tells which fields hold only what the schema fills in by itself.

import type { Contract, FieldLists } from '../core/contract.ts';
import { SemelError } from '../core/errors.ts';
import type { LeftOut } from '../core/identity.ts';
import type { SchemaIssue, StandardSchema } from '../core/standard-schema.ts';
import { type SchemaDefaults, schemaDefaults } from './schema-defaults.ts';

export interface Validated {
  readonly args: unknown;
  /** By the lists of the contract, and of each earlier form of it. */
  readonly leftOut: ReadonlyMap<FieldLists, LeftOut>;
}

export async function validated(
  schema: StandardSchema,
  input: unknown,
  contract: Contract,
  warnOnce: (message: string) => void = () => undefined,
): Promise<Validated> {
  const args = await checkArgs(schema, input, contract);
  const leftOut = new Map<FieldLists, LeftOut>();
  // Nothing is remembered of a read, so it has no identity.
  if (contract.effect === 'read') return { args, leftOut };
  const judge = schemaDefaults(async (trial) => schema['~standard'].validate(trial), input, args);
  for (const { fields } of [...contract.was, contract]) {
    if (leftOut.has(fields)) continue;
    const found = await judge(fields);
    leftOut.set(fields, found);
    if (fields === contract.fields) warnOf(contract.name, found, warnOnce);
  }
  return { args, leftOut };
}

/** What the schema makes of the args. */
export async function checkArgs(
  schema: StandardSchema,
  input: unknown,
  contract: Contract,
): Promise<unknown> {
  const result = await validate(schema, input, contract);
  if (result.issues !== undefined) throw invalid(contract.name, result.issues);
  return result.value;
}

function warnOf(name: string, { fresh, stuck }: SchemaDefaults, warnOnce: (message: string) => void): void {
  for (const steps of fresh)
    warnOnce(
      `${name}: the schema fills \`${steps.join('.')}\` in with something else each time, so it is left out of the identity. Name it in \`volatile\`.`,
    );
  for (const steps of stuck)
    warnOnce(
      `${name}: semel cannot tell which fields hold a default of the schema, since they may depend on \`${steps.join('.')}\`, which semel cannot try other values for. So all identity fields are in the key: name the earlier form in \`was\` when you add a field with a default.`,
    );
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
