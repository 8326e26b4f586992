// One header of a request, however its headers are kept. Refuses one that is there twice: the two may differ.

import { SemelError } from '../core/errors.ts';
import { headerEntries } from '../core/header-entries.ts';

/** `Headers`, or the plain object of `node:http` and most frameworks. */
export type HeadersLike = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export function readHeader(who: string, headers: HeadersLike, name: string): string | undefined {
  const values = headerEntries(headers).flatMap(([each, value]) =>
    each === name.toLowerCase() ? ((value ?? []) as string | readonly string[]) : [],
  );
  if (values.length > 1) {
    throw new SemelError('NO_IDENTITY', `${who}: the header \`${name}\` was sent more than once.`, {
      path: name,
      next: 'Send it once.',
    });
  }
  return values[0];
}
