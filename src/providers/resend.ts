// Resend. Its SDK takes no `fetch` and throws nothing: pass `{ idempotencyKey: ctx.key }`, and throw its `error`.

import type { Answer } from './answer.ts';
import { defineRow } from './row.ts';

export const resendRow = defineRow({
  name: 'resend',
  covers: 'POST /emails and /emails/batch',
  key: { header: 'Idempotency-Key' },
  fits: /^.{1,256}$/,
  window: '24h',
  inFlight: { status: 409, code: 'concurrent_idempotent_requests' },
  mismatch: { status: 409, code: 'invalid_idempotent_request' },
  verify: '`verifyResendEmail`, by a tag.',
  note: 'By SMTP the header is `Resend-Idempotency-Key`.',
  hosts: ['api.resend.com'],
  sdk: resendError,
  // Its SDK finds this out before it sends, and has no status for it.
  meanings: { invalid_parameter: 'rejected' },
  source: 'https://resend.com/docs/dashboard/emails/idempotency-keys',
  checkedAt: '2026-11-16',
  verified: true,
});

const codes = new Set([
  'application_error',
  'concurrent_idempotent_requests',
  'daily_quota_exceeded',
  'internal_server_error',
  'invalid_access',
  'invalid_api_key',
  'invalid_attachment',
  'invalid_from_address',
  'invalid_idempotency_key',
  'invalid_idempotent_request',
  'invalid_parameter',
  'invalid_region',
  'method_not_allowed',
  'missing_api_key',
  'missing_required_field',
  'monthly_quota_exceeded',
  'not_found',
  'rate_limit_exceeded',
  'restricted_api_key',
  'security_error',
  'validation_error',
]);

/** `{ name, message, statusCode }`, as it is or as an Error. */
function resendError(error: object): Answer | undefined {
  const { name, statusCode } = error as Record<string, unknown>;
  if (!codes.has(name as string) || !('statusCode' in error)) return undefined;
  // The SDK hides what `fetch` threw: nobody knows whether it was sent.
  return { status: typeof statusCode === 'number' ? statusCode : 500, words: [name] };
}
