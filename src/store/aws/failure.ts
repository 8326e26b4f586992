// Turns the errors of AWS services into the caller's.

import { isSemelError, SemelError } from '../../core/errors.ts';
import { isRecordDamage } from '../damage.ts';
import type { RemoteBackend } from '../remote/backend.ts';
import { AwsError } from './client.ts';

const refused =
  /^(AccessDenied|AccessDeniedException|UnrecognizedClientException|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidSignatureException|MissingAuthenticationToken|MissingAuthenticationTokenException|IncompleteSignature|IncompleteSignatureException|ExpiredToken|ExpiredTokenException|InvalidToken|InvalidClientTokenId|RequestTimeTooSkewed|AllAccessDisabled)$/;
const missing = /^(ResourceNotFoundException|NoSuchBucket)$/;
const busy =
  /^(Throttling|ThrottlingException|ProvisionedThroughputExceededException|RequestLimitExceeded|SlowDown|ConditionalRequestConflict|OperationAborted|TransactionConflictException)$/;

export function judgeAws(
  error: unknown,
  { where, permissions }: { readonly where: string; readonly permissions: string },
): ReturnType<RemoteBackend['judge']> {
  if (isSemelError(error)) return { error, concernsAll: !isRecordDamage(error) };
  const cause = describe(error);
  const details = { cause: error, evidence: { store: where, cause } };
  const all = (happened: string, next: string, retriable?: boolean) => ({
    error: new SemelError('STORE_UNAVAILABLE', happened, {
      next: `Nothing was run. ${next}`,
      ...details,
      ...(retriable === undefined ? {} : { retriable }),
    }),
    concernsAll: true,
  });
  if (!(error instanceof AwsError))
    return all(`${where} does not answer (${cause}).`, 'Call again when it answers.');
  const { code, status } = error;
  if (refused.test(code) || status === 401 || status === 403)
    return {
      error: new SemelError('STORE_UNSAFE', `${where} refused the request (${cause}).`, {
        next: `Nothing was run. Check the credentials, and allow them ${permissions}.`,
        ...details,
      }),
      concernsAll: true,
    };
  if (missing.test(code))
    return all(`${where} is not there (${cause}).`, 'Check its name and region.', false);
  if (busy.test(code)) return all(`${where} is too busy (${cause}).`, 'Call again later.');
  if (status >= 500) return all(`${where} failed (${cause}).`, 'Call again later.');
  return {
    error: new SemelError('STORE_UNAVAILABLE', `${where} rejected a record (${cause}).`, {
      next: "Nothing was run. See the service's message.",
      ...details,
      retriable: false,
    }),
    concernsAll: false,
  };
}

function describe(error: unknown): string {
  if (error instanceof AwsError) return error.message === '' ? error.code : `${error.code}: ${error.message}`;
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  // `fetch failed` says nothing; its cause does.
  return cause instanceof Error
    ? cause.message || ((cause as { code?: string }).code ?? error.message)
    : error.message;
}
