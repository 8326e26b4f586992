// A test runner that holds servers and never lets go of them by itself.

import { jobOf, print } from '../processes/child.ts';
import { startPostgres } from './postgres.ts';
import { startRedis } from './redis.ts';

export interface Held {
  readonly ports: readonly number[];
  readonly folders: readonly string[];
}

const { isPaused } = jobOf<{ isPaused: boolean }>();
const servers = [await startPostgres(), await startRedis()].filter((server) => server !== undefined);
if (isPaused) await Promise.all(servers.map((server) => server.pause()));
print({
  ports: servers.map(({ port }) => port),
  folders: servers.map(({ dataFolder }) => dataFolder),
} satisfies Held);
setInterval(() => undefined, 1000);
