// What the DynamoDB store exports.

export type { AwsCredentials } from '../../store/aws/index.ts';
export { type DynamodbStoreOptions, dynamodbStore } from './store.ts';
