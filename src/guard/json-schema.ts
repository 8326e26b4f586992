// The schema of a tool that `semel.tool` made, as JSON Schema, for frameworks that take nothing else. The schema library
// makes it: zod, arktype and all that are a Standard JSON Schema too.

import { SemelError } from '../core/errors.ts';
import type { ToolFunction } from '../semel/index.ts';

interface Convertible {
  readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => object };
}

export function jsonSchemaOf({ contract, input }: ToolFunction<never, unknown>): Record<string, unknown> {
  const { jsonSchema } = (input?.['~standard'] ?? {}) as Convertible;
  if (jsonSchema === undefined)
    throw new SemelError('CONTRACT_INVALID', `${contract.name} has no schema that a model can be shown.`, {
      path: 'input',
      next: 'Give the tool an `input` that can be made JSON Schema, a zod object for example.',
    });
  const { $schema: _, ...schema } = jsonSchema.input({ target: 'draft-2020-12' }) as Record<string, unknown>;
  return schema;
}
