// Signed requests to AWS and to services that speak its protocol.

export { type AwsAnswer, type AwsClient, AwsError, type AwsRequest, createClient } from './client.ts';
export { judgeAws } from './failure.ts';
export { type AwsOptions, type AwsPlace, findPlace } from './place.ts';
export { type AwsCredentials, encodeStrictly } from './sign.ts';
