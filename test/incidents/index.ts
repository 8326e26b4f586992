// All incidents, in the order in which they are told. A new one is a file here and a line below.

import { incident as batchStartedAgain } from './batch-started-again.ts';
import { incident as ciComment } from './ci-comment.ts';
import { incident as crashAfterSend } from './crash-after-send.ts';
import { incident as crashBeforeSend } from './crash-before-send.ts';
import type { Incident } from './incident.ts';
import { incident as keyOrder } from './key-order.ts';
import { incident as ledgerDown } from './ledger-down.ts';
import { incident as mailAfterTimeout } from './mail-after-timeout.ts';
import { incident as messageRedelivered } from './message-redelivered.ts';
import { incident as overlappingCron } from './overlapping-cron.ts';
import { incident as parallelRetries } from './parallel-retries.ts';
import { incident as postAfter502 } from './post-after-502.ts';
import { incident as providerForgot } from './provider-forgot.ts';
import { incident as pushFails } from './push-fails.ts';
import { incident as refundReplayed } from './refund-replayed.ts';
import { after as relayDiesAfter, before as relayDiesBefore } from './relay-dies.ts';
import { incident as reportOutlivesLimit } from './report-outlives-limit.ts';
import { incident as rewordedBody } from './reworded-body.ts';
import { incident as threeWrites } from './three-writes.ts';
import { incident as twoClicks } from './two-clicks.ts';
import { incident as webhookThreeTimes } from './webhook-three-times.ts';
import { incident as weeklyDigest } from './weekly-digest.ts';
import { incident as zombie } from './zombie.ts';

export const incidents: readonly Incident[] = [
  mailAfterTimeout,
  refundReplayed,
  rewordedBody,
  keyOrder,
  crashBeforeSend,
  crashAfterSend,
  zombie,
  twoClicks,
  parallelRetries,
  webhookThreeTimes,
  ledgerDown,
  providerForgot,
  weeklyDigest,
  batchStartedAgain,
  threeWrites,
  messageRedelivered,
  relayDiesBefore,
  relayDiesAfter,
  reportOutlivesLimit,
  postAfter502,
  overlappingCron,
  pushFails,
  ciComment,
];
