// The endpoints that the dashboard reads, and its login. Programs may use them too.

import { isSemelError, SemelError } from '../../core/errors.ts';
import type { Context, Endpoint } from '../endpoint.ts';
import { answers } from '../exchange/answers.ts';
import { jobsQuery, listJobs } from './jobs-view.ts';
import { eventsQuery, listen } from './live.ts';
import { nothing } from './records.ts';
import { search, searchQuery } from './search.ts';
import { showStats, statsQuery } from './stats.ts';
import { listOutbox, outboxQuery, showSummary, whoAmI } from './summary.ts';

const reading: readonly Endpoint[] = [
  {
    method: 'GET',
    path: '/v1/whoami',
    role: 'read',
    about:
      'The name and role of the token, and the namespaces that it may look into, with what is open there.',
    input: nothing,
    run: whoAmI,
  },
  {
    method: 'GET',
    path: '/v1/summary',
    role: 'read',
    about: 'How many records are in doubt and in flight.',
    input: nothing,
    run: showSummary,
  },
  {
    method: 'GET',
    path: '/v1/stats',
    role: 'read',
    about: 'Counts over time, from the newest record on; `coverage` says how far they reach.',
    input: statsQuery,
    run: showStats,
  },
  {
    method: 'GET',
    path: '/v1/search',
    role: 'read',
    about:
      'Finds records by key, id, ref, tool call id, remote reference, or a text in their args or result.',
    input: searchQuery,
    run: search,
  },
  {
    method: 'GET',
    path: '/v1/jobs',
    role: 'read',
    about: 'Jobs, and what became of their slots by day.',
    input: jobsQuery,
    run: listJobs,
  },
  {
    method: 'GET',
    path: '/v1/outbox',
    role: 'read',
    about: 'What is staged and not delivered.',
    input: outboxQuery,
    run: listOutbox,
  },
  {
    method: 'GET',
    path: '/v1/events',
    role: 'read',
    about:
      'Server-sent events: `change` when something was written, `record` for the record that was asked for.',
    input: eventsQuery,
    isStream: true,
    run: listen,
  },
  {
    method: 'POST',
    path: '/v1/logins',
    role: 'read',
    about: 'Creates a code for a browser: it works once, within five minutes, with the rights of this token.',
    input: nothing,
    output: answers.login,
    run: async (_: object, { logins, credential }: Context) => logins.createCode(credential),
  },
];

/** These read the store past the ledger, which would have said what a driver's error means. */
export const viewEndpoints: readonly Endpoint[] = reading.map((endpoint) => ({
  ...endpoint,
  async run(input: never, context: Context) {
    try {
      return await endpoint.run(input, context);
    } catch (error) {
      if (isSemelError(error)) throw error;
      throw new SemelError('STORE_UNAVAILABLE', `The store failed: ${(error as Error).message}`, {
        next: 'Try again.',
        retriable: true,
        retryAfterMs: 1_000,
      });
    }
  },
}));
