// A server in a process of its own, so that its memory is not the clients'. On SIGUSR2 it says how much it uses.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { digestToken, startServer } from '../../../src/server/index.ts';
import { postgresStore } from '../../../src/stores/postgres/index.ts';
import { sqliteStore } from '../../../src/stores/sqlite/index.ts';

export type Place =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string };

export interface Job {
  readonly place: Place;
  readonly token: string;
}

export type Line =
  | { readonly url: string }
  | { readonly memory: number; readonly rss: number; readonly heap: number }
  | { readonly warning: string };

const { place, token } = JSON.parse(process.argv[2] as string) as Job;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const server = await startServer({
  store:
    place.kind === 'sqlite'
      ? sqliteStore({ path: place.path })
      : postgresStore({ url: place.url, schema: place.schema, durability: 'accept-loss' }),
  policies: {
    version: 1,
    tools: { charge: { effect: 'write-non-idempotent', per: 'ever', identity: ['order'] } },
  },
  tokens: [{ name: 'load', role: 'admin', namespace: 'shop', sha256: digestToken(token) }],
  listen: { host: '127.0.0.1', port: 0 },
  onWarning: (warning) => print({ warning }),
});

let asked = 0;
process.on('SIGUSR2', () => {
  collectGarbage();
  const { rss, heapUsed: heap } = process.memoryUsage();
  asked += 1;
  print({ memory: asked, rss, heap });
});
process.stdin.resume().on('end', () => void server.close(0));
print({ url: server.url });

function print(line: Line): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
