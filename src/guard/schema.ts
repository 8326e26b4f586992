// What a model sees of a tool's args: JSON Schema for frameworks that need it, and the field names and descriptions in it.
// The schema library converts it (zod, arktype, any Standard JSON Schema).

import { SemelError } from '../core/errors.ts';
import type { ToolFunction } from '../semel/index.ts';

interface Convertible {
  readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => object };
}

export function toJsonSchema({ contract, input }: ToolFunction<never, unknown>): Record<string, unknown> {
  const schema = convert(input);
  if (schema === undefined)
    throw new SemelError('CONTRACT_INVALID', `${contract.name} has no schema to show to a model.`, {
      path: 'input',
      next: 'Give the tool an `input` that converts to JSON Schema, for example a zod object.',
    });
  const { $schema: _, ...shown } = schema as Record<string, unknown>;
  return shown;
}

function convert(schema: unknown): object | undefined {
  const { '~standard': standard } = (schema ?? {}) as { readonly '~standard'?: Convertible };
  return standard?.jsonSchema?.input({ target: 'draft-2020-12' });
}

/** The field names and descriptions at any depth of a zod schema, a JSON Schema, or a framework's wrapper of one. */
export function collectTexts(schema: unknown): {
  readonly names: readonly string[];
  readonly descriptions: readonly unknown[];
} {
  const names: string[] = [];
  const descriptions: unknown[] = [];
  const seen = new Set<unknown>();
  // Not recursive, and no spread: a remote server may have written the schema, as deep and as wide as it liked.
  const parts: unknown[] = [plainSchema(schema)];
  for (const part of parts) {
    if (typeof part !== 'object' || part === null || seen.has(part)) continue;
    seen.add(part);
    const { properties, description } = part as Record<string, unknown>;
    if (description !== undefined) descriptions.push(description);
    if (typeof properties === 'object' && properties !== null)
      for (const name of Object.keys(properties)) names.push(name);
    for (const each of Object.values(part)) parts.push(each);
  }
  return { names, descriptions };
}

function plainSchema(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const { shape } = schema as Record<string, unknown>;
  try {
    const plain = convert(schema);
    if (plain !== undefined) return plain;
  } catch {
    // JSON Schema cannot express parts of it: use its own fields.
  }
  if (typeof shape !== 'object' || shape === null) return schema;
  return { properties: Object.fromEntries(Object.keys(shape).map((name) => [name, true])) };
}

/** The names of the top level. */
export function fieldNames(schema: unknown): readonly string[] {
  const { shape, properties, jsonSchema } = partsOf(schema);
  if (typeof properties === 'object' && properties !== null) return Object.keys(properties);
  if (typeof jsonSchema === 'object' && jsonSchema !== null) return fieldNames(jsonSchema);
  return typeof shape === 'object' && shape !== null ? Object.keys(shape) : [];
}

const furtherFields = ['anyOf', 'oneOf', 'allOf', '$ref', 'patternProperties', 'if', 'dependentSchemas'];

/** It accepts fields that it does not list. */
export function isOpenSchema(schema: unknown): boolean {
  const parts = partsOf(schema);
  if (typeof parts.jsonSchema === 'object' && parts.properties === undefined)
    return isOpenSchema(parts.jsonSchema);
  // Zod 4, then zod 3.
  const { catchall, unknownKeys } = partsOf(partsOf(parts._zod).def ?? parts._def);
  const others = partsOf(partsOf(catchall)._zod).def ?? partsOf(catchall)._def;
  const { type, typeName } = partsOf(others);
  if (others !== undefined && type !== 'never' && typeName !== 'ZodNever') return true;
  const { additionalProperties: more = false } = parts;
  return unknownKeys === 'passthrough' || more !== false || furtherFields.some((field) => field in parts);
}

function partsOf(schema: unknown): Record<string, unknown> {
  return typeof schema === 'object' && schema !== null ? (schema as Record<string, unknown>) : {};
}
