// What the bench of the outbox asks of a queue: to take an intent in the caller's transaction and to deliver it.

import type pg from 'pg';

export interface Intent {
  readonly order: string;
  readonly n: number;
}

/** What is delivered. Resolves when the effect has landed. */
export type Deliver = (intent: Intent) => Promise<void>;

export interface Queue extends AsyncDisposable {
  readonly name: string;
  /** In the caller's transaction. */
  readonly stage?: (tx: pg.PoolClient, intent: Intent) => Promise<unknown>;
  /** After the commit, where the queue cannot take part in it: a crash in between loses the intent. */
  readonly add?: (intent: Intent) => Promise<unknown>;
}

export interface QueueOptions {
  readonly url: string;
  readonly deliver: Deliver;
}
