// What an engine gives: a first delivery, a redelivery, a new run.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** `never`, because each reader takes the type of its own engine. */
export interface Fixture {
  readonly first: never;
  readonly redelivery: never;
  readonly newRun: never;
  readonly [more: string]: never;
}

export function fixture(file: string): Fixture {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'fixtures', `${file}.json`), 'utf8'));
}
