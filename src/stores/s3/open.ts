// Checks that a bucket is fit for a ledger. Refuses a service that writes without comparing, and rules that delete objects.

import { SemelError } from '../../core/errors.ts';
import { AwsError } from '../../store/aws/index.ts';
import { type Bucket, refuseMissing, type S3Cells } from './cells.ts';
import { readTag, readTags } from './xml.ts';

export async function openBucket(
  { client, bucket, prefix }: Bucket,
  cells: Pick<S3Cells, 'probe'>,
  where: string,
): Promise<{ readonly forgets: string | undefined }> {
  const forgets = await refuseExpiry();
  await cells.probe();
  return { forgets };

  /** A sentence if the rules cannot be read. */
  async function refuseExpiry(): Promise<string | undefined> {
    const unknown = `The lifecycle rules of ${where} cannot be read: a rule that expires objects would make semel forget, and effects would be repeated.`;
    try {
      const answer = await refuseMissing(
        client({ method: 'GET', path: `/${bucket}`, query: { lifecycle: '' } }),
      );
      if (answer.status === 404) return undefined;
      if (!answer.text.includes('LifecycleConfiguration')) return unknown;
      if (readTags(answer.text, 'Rule').some(deletesOurs))
        throw unsafe(
          `${where} has a lifecycle rule that expires objects of the ledger: effects would be repeated.`,
          'Remove the rule, or limit it to another prefix. semel removes expired records itself.',
        );
      return undefined;
    } catch (error) {
      const isHidden =
        error instanceof AwsError &&
        (/^(AccessDenied|NotImplemented)/.test(error.code) || error.status === 501);
      if (isHidden) return unknown;
      throw error;
    }
  }

  function deletesOurs(rule: string): boolean {
    const applies = readTag(rule, 'Prefix') ?? '';
    const isOurs = applies.startsWith(prefix) || prefix.startsWith(applies);
    return isOurs && readTag(rule, 'Status') === 'Enabled' && /<Expiration>\s*<(Days|Date)>/.test(rule);
  }
}

export function ignoresConditionsError(where: string): SemelError {
  return unsafe(
    `${where} writes objects without comparing them first: two workers could claim one key.`,
    'Use a service with conditional writes (If-None-Match and If-Match on PUT): Amazon S3 or Cloudflare R2.',
  );
}

function unsafe(happened: string, next: string): SemelError {
  return new SemelError('STORE_UNSAFE', happened, { next: `Nothing was run. ${next}` });
}
