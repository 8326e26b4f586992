// A row of the registry: what one provider honours, where it says so, and the `Provider` that a contract takes. Data;
// the one thing that is computed is the `Provider`.

import type { Classified } from '../core/contract/classify.ts';
import type { Duration } from '../core/contract/duration.ts';
import type { Provider } from '../core/contract/provider.ts';
import { type Answer, classifierOf } from './answer.ts';

/** Where the key travels. `tool`: the tool puts `ctx.key` there itself. `none`: it honours no key. */
export type KeyPlace =
  | { readonly header: string }
  | { readonly bodyField: string }
  | { readonly queryField: string }
  | { readonly tool: string }
  | 'none';

/** How it answers a key that it knows: a status, and the words in the error by which its meaning is known. */
export interface KeyAnswer {
  readonly status?: number;
  readonly code?: string;
}

export interface RowFacts {
  readonly name: string;
  /** Which part of the service the row is about. */
  readonly covers: string;
  readonly key: KeyPlace;
  /** What a key must look like. */
  readonly fits?: RegExp;
  /** Our UUID in that form. */
  readonly format?: (uuid: string) => string;
  /** How long a key is remembered, at the least; undefined: it does not say. */
  readonly window?: Duration;
  /** To a second request while the first is at work. */
  readonly inFlight?: KeyAnswer;
  /** To a known key with another request. */
  readonly mismatch?: KeyAnswer;
  /** What a known key whose request failed gets: the stored error, a new try, or how things stand now. */
  readonly errors?: 'replayed' | 'tried again' | 'current state';
  /** How `verify` can find what landed. */
  readonly verify: string;
  readonly note?: string;
  readonly hosts: readonly string[];
  /** Keys that its SDK makes up. */
  readonly sdkKey?: RegExp;
  /** Recognises an error of its SDK. */
  readonly sdk?: (error: object) => Answer | undefined;
  /** What its own error codes mean where the status alone would mislead. */
  readonly meanings?: Readonly<Record<string, Classified>>;
  /** Its own documentation. */
  readonly source: string;
  /** When that was read: a day, or a month. */
  readonly checkedAt: string;
  /** Place and window of the key were read there. */
  readonly verified: boolean;
}

export interface ProviderRow extends RowFacts {
  readonly provider: Provider;
}

export function defineRow(facts: RowFacts): ProviderRow {
  const { name, key, format, window = 0, errors, hosts, sdkKey, verified } = facts;
  return {
    ...facts,
    provider: {
      name,
      window,
      hosts,
      verified,
      ...placeOf(key),
      ...(format === undefined ? {} : { format }),
      ...(sdkKey === undefined ? {} : { sdkKey }),
      ...(errors === 'replayed' ? { replaysErrors: true } : {}),
      classify: classifierOf(facts),
    },
  };
}

function placeOf(key: KeyPlace): Partial<Provider> {
  if (key === 'none') return { sentBy: 'nobody' };
  return 'tool' in key ? { sentBy: 'tool' } : key;
}

/** Without the dashes: 32 hexadecimal digits. */
export function plainHex(uuid: string): string {
  return uuid.replaceAll('-', '');
}
