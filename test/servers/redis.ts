// A real Redis for one test: its own folder, its own port, and nothing of it left afterwards.

import { askRedis } from './ask-redis.ts';
import { findProgram } from './found-program.ts';
import { type Server, type ServerOptions, startServer } from './server.ts';

export interface RedisOptions extends ServerOptions {
  /** When what was acknowledged is on disk: at once (without a word), within a second, never. */
  readonly persistence?: 'always' | 'everysec' | 'none';
}

/** `kill()` is SIGKILL; what it wrote and did not sync survives that, as the machine does not crash with it. */
export interface RedisServer extends Server {
  readonly url: string;
}

/** Undefined, after a line on the console, if no Redis can be had. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer | undefined> {
  const program = await findProgram({
    name: 'redis-server',
    packages: ['redis-server', 'redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1'],
  });
  if (program === undefined) return undefined;
  const { persistence = 'always' } = options;
  const server = await startServer(
    {
      name: 'redis',
      ...program,
      args({ port, dataFolder, settings }) {
        const all = {
          bind: '127.0.0.1',
          port: String(port),
          dir: dataFolder,
          save: '',
          ...(persistence === 'none' ? {} : { appendonly: 'yes', appendfsync: persistence }),
          ...settings,
        };
        return Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
      },
      async isReady({ port, pid }) {
        const answer = (await askRedis(port, 'PING\r\nINFO server')) ?? '';
        // Who answers there could be somebody else's.
        return answer.startsWith('+PONG') && answer.includes(`process_id:${pid}\r\n`);
      },
      stopBy: 'SIGTERM',
      killBy: 'SIGKILL',
    },
    options,
  );
  return { ...server, url: `redis://127.0.0.1:${server.port}` };
}
