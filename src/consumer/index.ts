// A tool behind a queue: what was delivered again is not done again, and nothing is acknowledged before it is on record.

export {
  type Consumer,
  type ConsumerOptions,
  createConsumer,
  type QueueMessage,
} from './consumer.ts';
export type { Decision } from './decision.ts';
