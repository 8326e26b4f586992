// Amazon S3 and whatever speaks its API: by `Metadata: { semel: ctx.mark() }` of the object. Reads see every earlier write.

import { landed, notLanded, unsure } from '../../core/verification.ts';
import {
  type AsFound,
  type AsValue,
  answer,
  orUndefined,
  type SearchOptions,
  type Verifier,
} from './search.ts';

export interface S3Head {
  readonly ETag?: string | undefined;
  readonly VersionId?: string | undefined;
  readonly Metadata?: Readonly<Record<string, string>> | undefined;
}

interface S3Like {
  headObject(input: never): Promise<S3Head>;
}

interface S3Place {
  readonly Bucket: string;
  readonly Key: string;
}

interface S3Options<Args> extends Pick<SearchOptions, 'part'> {
  /** `new S3({ … })` of `@aws-sdk/client-s3`, or anything with its `headObject`. */
  readonly client: S3Like;
  readonly object: (args: Args) => S3Place;
}

/** What was written: the object's key, and the version, where the bucket has versions. */
export interface S3Found {
  readonly key: string;
  readonly etag: string | undefined;
}

/**
 * Finds an object. Cannot see one that was overwritten or deleted since: another object in its place is "unsure". Needs
 * `s3:GetObject` and `s3:ListBucket`; without the second, S3 answers 403 for what is not there, which is "unsure".
 */
export function verifyS3Object<Args, Value>(
  options: S3Options<Args> & AsValue<S3Head, Value>,
): Verifier<Args, Value>;
export function verifyS3Object<Args>(options: S3Options<Args> & AsFound): Verifier<Args, S3Found>;
export function verifyS3Object<Args>(
  options: S3Options<Args> & { readonly value?: ((head: S3Head) => unknown) | undefined },
): Verifier<Args, never> {
  return (args, ctx) =>
    answer('S3', async () => {
      const { Bucket, Key } = options.object(args);
      const head = await orUndefined(options.client.headObject({ Bucket, Key } as never));
      if (head === undefined) return notLanded();
      if (head.Metadata?.semel !== ctx.mark(options.part))
        return unsure(`${Bucket}/${Key} is there, but another call wrote it; ours may have been overwritten`);
      const value = options.value === undefined ? { key: Key, etag: head.ETag } : await options.value(head);
      return landed(value as never, head.VersionId ?? Key);
    });
}
