// The header of draft-ietf-httpapi-idempotency-key-header-07 (expired in April 2026, without a successor so far): a quoted text, and bare
// as most clients send it. Both are the same key.

import { BodyRefused } from '../body.ts';

/**
 * Visible ASCII without quotes, backslash, comma and semicolon. A header that came twice is joined with a comma, so that two
 * keys are never taken for one.
 */
const pattern = /^(?:"([!#-+\--:<-[\]-~]{1,255})"|([!#-+\--:<-[\]-~]{1,255}))$/;

/** Undefined: there is none. */
export function readIdempotencyKey(
  header: string | readonly string[] | null | undefined,
): string | undefined {
  // An empty one is not missing: a client that sends it means to be guarded.
  if (header == null) return undefined;
  const [, quoted, bare] = pattern.exec([header].flat().join(', ').trim()) ?? [];
  const key = quoted ?? bare;
  if (key !== undefined) return key;
  throw new BodyRefused(
    400,
    'The Idempotency-Key is not one.',
    'Send one header with 1 to 255 visible ASCII characters, such as a UUID.',
  );
}
