// What a model is shown of a tool's args: as JSON Schema, for frameworks that take nothing else, and as the names and
// words in it. The schema library makes it: zod, arktype and all that are a Standard JSON Schema too.

import { SemelError } from '../core/errors.ts';
import type { ToolFunction } from '../semel/index.ts';

interface Convertible {
  readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => object };
}

export function jsonSchemaOf({ contract, input }: ToolFunction<never, unknown>): Record<string, unknown> {
  const schema = converted(input);
  if (schema === undefined)
    throw new SemelError('CONTRACT_INVALID', `${contract.name} has no schema that a model can be shown.`, {
      path: 'input',
      next: 'Give the tool an `input` that can be made JSON Schema, a zod object for example.',
    });
  const { $schema: _, ...shown } = schema as Record<string, unknown>;
  return shown;
}

function converted(schema: unknown): object | undefined {
  const { '~standard': standard } = (schema ?? {}) as { readonly '~standard'?: Convertible };
  return standard?.jsonSchema?.input({ target: 'draft-2020-12' });
}

interface Shown {
  /** Of fields, at any depth. */
  readonly names: readonly string[];
  readonly words: readonly unknown[];
}

/** Of zod, of JSON Schema, of what frameworks wrap around it. */
export function shownIn(schema: unknown): Shown {
  const names: string[] = [];
  const words: unknown[] = [];
  const seen = new Set<unknown>();
  const look = (part: unknown): void => {
    if (typeof part !== 'object' || part === null || seen.has(part)) return;
    seen.add(part);
    const { properties, description } = part as Record<string, unknown>;
    if (description !== undefined) words.push(description);
    if (typeof properties === 'object' && properties !== null) names.push(...Object.keys(properties));
    for (const each of Object.values(part)) look(each);
  };
  look(plainSchema(schema));
  return { names, words };
}

function plainSchema(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const { shape } = schema as Record<string, unknown>;
  try {
    const plain = converted(schema);
    if (plain !== undefined) return plain;
  } catch {
    // It has parts that JSON Schema has no words for: then its own fields are looked at.
  }
  if (typeof shape !== 'object' || shape === null) return schema;
  return { properties: Object.fromEntries(Object.keys(shape).map((name) => [name, true])) };
}

/** Of its top, in whatever way it is written. */
export function fieldNames(schema: unknown): readonly string[] {
  const { shape, properties, jsonSchema } = partsOf(schema);
  if (typeof properties === 'object' && properties !== null) return Object.keys(properties);
  if (typeof jsonSchema === 'object' && jsonSchema !== null) return fieldNames(jsonSchema);
  return typeof shape === 'object' && shape !== null ? Object.keys(shape) : [];
}

const furtherFields = ['anyOf', 'oneOf', 'allOf', '$ref', 'patternProperties', 'if', 'dependentSchemas'];

/** It takes fields that it does not list. */
export function isOpen(schema: unknown): boolean {
  const parts = partsOf(schema);
  if (typeof parts.jsonSchema === 'object' && parts.properties === undefined) return isOpen(parts.jsonSchema);
  // Of zod 4, and of zod 3.
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
