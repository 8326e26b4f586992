// Checks of a contract's fields. A refusal names the field, what is wrong, and what to do.

import { SemelError } from '../errors.ts';

export function list<T>(name: string, field: string, value: readonly T[] = []): readonly T[] {
  if (Array.isArray(value)) return value;
  return refuse(field, `${name}: \`${field}\` must be a list.`, `Write ${field}: […].`);
}

export function oneOf<T extends string>(name: string, field: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value;
  return refuse(
    field,
    `${name}: ${JSON.stringify(value)} is not a valid \`${field}\`.`,
    `Use one of ${allowed.join(', ')}.`,
  );
}

export function flag(name: string, field: string, value: boolean): boolean {
  if (typeof value === 'boolean') return value;
  return refuse(
    field,
    `${name}: \`${field}\` must be true or false.`,
    `Write ${field}: true, or leave it out.`,
  );
}

export function whole(name: string, field: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  return refuse(
    field,
    `${name}: \`${field}\` must be a whole number of at least 1, not ${String(value)}.`,
    'Correct it.',
  );
}

export function positive(ms: number, field: string, name: string): number {
  if (ms > 0) return ms;
  return refuse(field, `${name}: \`${field}\` must be longer than 0.`, "Write it like '60s'.");
}

export function refuse(path: string, happened: string, next: string): never {
  throw new SemelError('CONTRACT_INVALID', happened, { path, next });
}
