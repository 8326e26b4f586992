// Identities from queues: the message or the job, never its delivery.

import { type HeadersLike, readHeader } from './headers.ts';
import { joinIds, optionalId, requireId, shortenId, type TurnIdentity } from './ids.ts';
import type { StepOption } from './workflows.ts';

/** The job that a BullMQ processor gets. */
export interface BullJob {
  readonly id?: string | undefined;
  readonly name: string;
  readonly queueName: string;
  /** When it was added. */
  readonly timestamp: number;
}

/** With the instant at which the job was added: an id may be used again once its job is removed. */
export function fromBullMQ(job: BullJob, { step }: StepOption = {}): TurnIdentity {
  const named = (path: keyof BullJob) =>
    requireId('bullmq', path, job?.[path], 'Pass the job that the processor got.');
  const conversation = joinIds('bullmq', named('queueName'), named('id'), named('timestamp'));
  return { conversation, turn: optionalId('bullmq', 'step', step) ?? shortenId(named('name')) };
}

/** A message as the SDK gives it (`MessageId`), or as Lambda does (`messageId`). */
export interface SqsMessage {
  readonly MessageId?: string | undefined;
  readonly messageId?: string | undefined;
}

/** A producer that sends twice makes two messages: an id of your own in the body is better where there is one. */
export function fromSqs(message: SqsMessage, { step }: StepOption = {}): TurnIdentity {
  const id = requireId(
    'sqs',
    'MessageId',
    message?.MessageId ?? message?.messageId,
    'Pass one message, or one record of a Lambda event.',
  );
  const conversation = joinIds('sqs', id);
  return { conversation, turn: optionalId('sqs', 'step', step) ?? conversation };
}

/** Verify the QStash signature first: anyone who can send headers could choose the identity. */
export function fromQStash(headers: HeadersLike, { step }: StepOption = {}): TurnIdentity {
  const id = requireId(
    'qstash',
    'Upstash-Message-Id',
    readHeader('qstash', headers, 'Upstash-Message-Id'),
    'Pass the headers of the request that QStash made.',
  );
  const conversation = joinIds('qstash', id);
  return { conversation, turn: optionalId('qstash', 'step', step) ?? conversation };
}
