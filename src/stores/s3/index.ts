// What the S3 store exports.

export type { AwsCredentials } from '../../store/aws/index.ts';
export { type S3StoreOptions, s3Store } from './store.ts';
