// The exit code of each error. docs/reference/cli.md lists them.

import { type ErrorCode, isSemelError } from '../core/errors.ts';

const usage = 64;
const storeUnavailable = 69;
const refused = 70;
const unrecorded = 74;
const inFlight = 75;
const inDoubt = 76;

const codes: Partial<Record<ErrorCode, number>> = {
  INVALID_ARGS: usage,
  CONTRACT_INVALID: usage,
  NOT_CANONICAL: usage,
  NO_IDENTITY: usage,
  REENTRANT: usage,
  STORE_UNAVAILABLE: storeUnavailable,
  STORE_UNSAFE: storeUnavailable,
  STORE_MOVED: storeUnavailable,
  UNRECORDED: unrecorded,
  IN_FLIGHT: inFlight,
  IN_DOUBT: inDoubt,
};

export function exitCodeOf(error: unknown): number {
  return (isSemelError(error) ? codes[error.code] : undefined) ?? refused;
}
