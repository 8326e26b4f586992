// Requests to DynamoDB: JSON over HTTP, one action each.

import { type AwsAnswer, type AwsClient, AwsError } from '../../store/aws/client.ts';

export interface Value {
  readonly S?: string;
  readonly N?: string;
  readonly B?: string;
}

export type Item = Readonly<Record<string, Value>>;

export type Ask = (action: string, body: object) => Promise<Readonly<Record<string, unknown>>>;

export function createAsk(client: AwsClient): Ask {
  return async (action, body) => {
    const answer = await client({
      method: 'POST',
      path: '/',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': `DynamoDB_20120810.${action}`,
      },
      body: JSON.stringify(body),
    });
    if (answer.status >= 400) throw parseError(answer);
    return JSON.parse(answer.text) as Record<string, unknown>;
  };
}

export function parseError({ status, text, redact }: AwsAnswer): AwsError {
  try {
    const { __type = '', message, Message } = JSON.parse(text) as Record<string, string>;
    return new AwsError(redact(__type.replace(/^.*#/, '')), status, redact(message ?? Message ?? ''));
  } catch {
    return new AwsError(`HTTP ${status}`, status, '');
  }
}

/** False: its condition did not hold. */
export async function isDone(asked: Promise<unknown>): Promise<boolean> {
  try {
    await asked;
    return true;
  } catch (error) {
    if (error instanceof AwsError && error.code === 'ConditionalCheckFailedException') return false;
    throw error;
  }
}
