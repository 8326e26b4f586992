// One Postgres and one Redis for all tests of a run that neither kill nor configure one: started before the first,
// gone after the last, and not at all where the chosen files use none. What a test makes there lies under a name of its own; see own-place.ts.

import type { TestProject } from 'vitest/node';
import { findNeeds } from './needs.ts';
import { startPostgres } from './postgres.ts';
import { startRedis } from './redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    readonly postgresUrl: string;
    /** Empty if no Redis can be had. */
    readonly redisUrl: string;
  }
}

export default async function share(project: TestProject): Promise<() => Promise<void>> {
  const needs = await findNeeds(project);
  const [postgres, redis] = await Promise.all([
    needs.has('postgres') ? startPostgres() : undefined,
    needs.has('redis') ? startRedis({ persistence: 'everysec' }) : undefined,
  ]);
  project.provide('postgresUrl', postgres?.url ?? '');
  project.provide('redisUrl', redis?.url ?? '');
  return async () => {
    await Promise.all([postgres?.stop(), redis?.stop()]);
  };
}
