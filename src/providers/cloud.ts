// Clouds. Their SDKs fill the token in at random: pass `ctx.key`, or a re-run is a second request.

import { type Answer, inCauses } from './answer.ts';
import { defineRow } from './row.ts';

const month = '2026-11';
const uuidNotZero = /^(?!0{8}-)[0-9a-f-]{36}$/;

/** A `ServiceException` of the SDK for JavaScript. */
function awsError(error: object): Answer | undefined {
  return inCauses(error, (each) => {
    const { $metadata, name } = each as { $metadata?: { httpStatusCode?: unknown }; name?: unknown };
    if (typeof $metadata !== 'object' || $metadata === null) return undefined;
    const { httpStatusCode: status } = $metadata;
    return { status: typeof status === 'number' ? status : undefined, words: [name] };
  });
}

export const ec2Row = defineRow({
  name: 'aws.ec2',
  covers: 'Actions that take `ClientToken`',
  key: { tool: '`ClientToken`' },
  fits: /^[!-~]{1,64}$/,
  mismatch: { status: 400, code: 'IdempotentParameterMismatch' },
  verify: 'Describe by a tag that holds the key.',
  hosts: [],
  sdk: awsError,
  source: 'https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html',
  checkedAt: month,
  verified: true,
});

export const dynamodbRow = defineRow({
  name: 'aws.dynamodb',
  covers: 'TransactWriteItems',
  key: { tool: '`ClientRequestToken`' },
  fits: /^.{1,36}$/,
  window: '10m',
  inFlight: { status: 400, code: 'TransactionInProgressException' },
  mismatch: { status: 400, code: 'IdempotentParameterMismatchException' },
  verify: 'Get the item.',
  hosts: [],
  sdk: awsError,
  source: 'https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html',
  checkedAt: '2026-11-16',
  verified: true,
});

export const sqsFifoRow = defineRow({
  name: 'aws.sqs',
  covers: 'SendMessage to a FIFO queue',
  key: { tool: '`MessageDeduplicationId`' },
  fits: /^.{1,128}$/,
  window: '5m',
  verify: 'Not at all: a queue cannot be searched.',
  note: 'A second message is accepted and dropped.',
  hosts: [],
  sdk: awsError,
  source: 'https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html',
  checkedAt: month,
  verified: false,
});

export const googleComputeRow = defineRow({
  name: 'google.compute',
  covers: 'Compute Engine',
  key: { queryField: 'requestId' },
  fits: uuidNotZero,
  verify: 'Get it by its name.',
  hosts: ['compute.googleapis.com'],
  source: 'https://cloud.google.com/compute/docs/reference/rest/v1/instances/insert',
  checkedAt: '2026-11-16',
  verified: true,
});

export const googleCloudRow = defineRow({
  name: 'google.cloud',
  covers: 'Services that document 60 minutes for `requestId`',
  key: { tool: '`requestId`' },
  fits: uuidNotZero,
  window: '60m',
  errors: 'current state',
  verify: 'Get it by its name, or poll the operation.',
  note: "Not every service names a time: check the method's reference.",
  hosts: ['googleapis.com'],
  source: 'https://google.aip.dev/155',
  checkedAt: month,
  verified: true,
});

export const azureRow = defineRow({
  name: 'azure',
  covers: 'Services that follow Repeatable Requests',
  key: { tool: '`Repeatability-Request-ID`, with `Repeatability-First-Sent`' },
  window: '5m',
  verify: 'Get by id.',
  note: 'A service without support answers 501.',
  hosts: [],
  source: 'https://github.com/microsoft/api-guidelines',
  checkedAt: month,
  verified: true,
});

export const kubernetesRow = defineRow({
  name: 'kubernetes',
  covers: 'Create with a `metadata.name` made of the key',
  key: { tool: '`metadata.name`' },
  fits: /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
  // A name may have to begin with a letter.
  format: (uuid) => `semel-${uuid}`,
  verify: 'Get it by its name.',
  note: 'A second create is 409 AlreadyExists while the first exists. Never use `generateName`.',
  hosts: [],
  source: 'https://kubernetes.io/docs/concepts/overview/working-with-objects/names/',
  checkedAt: month,
  verified: false,
});
