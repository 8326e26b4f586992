// A consumer behind an existing queue: BullMQ, pg-boss, SQS with Lambda. Their clients are typed by their
// structure; none is imported.

export { type BullmqJob, type BullmqProcessor, type BullmqWorkerLimits, bullmqProcessor } from './bullmq.ts';
export {
  type PgBossJob,
  type PgBossLike,
  type PgBossResult,
  type PgBossWorkOptions,
  pgBossWorker,
} from './pg-boss.ts';
export {
  type SqsBatchResponse,
  type SqsEvent,
  type SqsHandler,
  type SqsHandlerOptions,
  type SqsRecord,
  sqsHandler,
} from './sqs.ts';
