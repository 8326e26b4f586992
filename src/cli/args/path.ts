// A field by its dotted path: `args.lead`. A field whose own name contains the dot wins.

import { isTooDeep } from '../../core/key/json-shape.ts';

export function valueAt(value: unknown, path: string): unknown {
  const fields = parseIfJson(value);
  if (typeof fields !== 'object' || fields === null) return undefined;
  if (Object.hasOwn(fields, path)) return (fields as Record<string, unknown>)[path];
  for (let dot = path.indexOf('.'); dot > 0; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot);
    if (Object.hasOwn(fields, name))
      return valueAt((fields as Record<string, unknown>)[name], path.slice(dot + 1));
  }
  return undefined;
}

/** Logs often hold args and metadata as JSON in a string. */
export function parseIfJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[{[]/.test(value) || isTooDeep(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
