// Clients of a server, each on a connection of its own that it keeps. They ask for new and for old keys, several at a time
// for the same one; the client that is told to execute makes the effect, and reports it.

import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';

export interface Load {
  readonly url: string;
  readonly token: string;
  readonly connections: number;
  /** Called before each call with the number of calls so far. */
  readonly isOver: (calls: number) => boolean;
}

export interface Outcome {
  /** One entry per effect: the key that it was made for. */
  readonly effects: readonly string[];
  /** The keys that were asked for. */
  readonly keys: ReadonlySet<string>;
  /** How many calls ended in an answer, and how many of those were replays. */
  readonly calls: number;
  readonly replays: number;
  /** How often a client was told that another one is at it. */
  readonly busy: number;
  /** Connections that were opened: at least one per client. */
  readonly opened: number;
  /** What nobody should see. */
  readonly errors: readonly string[];
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: {
    readonly outcome?: string;
    readonly code?: string;
    readonly attempt?: string;
    readonly value?: unknown;
    readonly recorded?: boolean;
    readonly held?: boolean;
  };
}

/** So many clients ask for each new key, one right after the other. */
const rivals = 4;
/** One call in so many asks for an earlier key. */
const oldOneIn = 4;

/** `from` makes the keys of one load differ from those of another. */
export async function load(from: string, { url, token, connections, isOver }: Load): Promise<Outcome> {
  const effects: string[] = [];
  const keys = new Set<string>();
  const errors: string[] = [];
  let [calls, replays, busy, opened, fresh] = [0, 0, 0, 0, 0];
  await Promise.all(Array.from({ length: connections }, work));
  return { effects, keys, calls, replays, busy, opened, errors };

  async function work(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const post = (path: string, body: object) =>
      ask(agent, `${url}/v1/${path}`, token, body, () => {
        opened += 1;
      });
    while (!isOver(calls)) {
      const n = calls++;
      // A prime, so that all keys of before have their turn.
      const isOld = n % oldOneIn === 0 && fresh > 0;
      const number = isOld ? (n * 7_919) % fresh : fresh++;
      const key = `${from}-${Math.floor(number / rivals)}`;
      keys.add(key);
      try {
        await call(post, n, key);
      } catch (error) {
        errors.push(`${key}: ${error}`);
      }
    }
    agent.destroy();
  }

  async function call(
    post: (path: string, body: object) => Promise<Answer>,
    n: number,
    key: string,
  ): Promise<void> {
    const args = { order: key, note: 'x'.repeat(200) };
    // Some let the server wait for the other client at once; some only once they were told that there is one. What
    // they are told to wait is the lease, since that client may be dead, and it is not.
    for (let waitMs = n % 2 === 0 ? 60_000 : 0; ; waitMs = 60_000) {
      const { status, retryAfter, body } = await post('begin', {
        tool: 'charge',
        args,
        waitMs,
        token: randomUUID(),
      });
      if (status === 200 && body.outcome === 'replay') {
        replays += 1;
        if (body.value !== `paid ${key}`) errors.push(`${key}: replayed ${JSON.stringify(body.value)}`);
        return;
      }
      if (status === 200 && body.outcome === 'execute') return execute(post, n, key, body.attempt as string);
      if (body.code !== 'IN_FLIGHT' || !(Number(retryAfter) > 0))
        throw new Error(`begin: ${status} ${JSON.stringify(body)}`);
      busy += 1;
    }
  }

  async function execute(
    post: (path: string, body: object) => Promise<Answer>,
    n: number,
    key: string,
    attempt: string,
  ): Promise<void> {
    effects.push(key);
    if (n % 3 === 0) {
      const { status, body } = await post('renew', { attempt });
      if (status !== 200 || body.held !== true) throw new Error(`renew: ${status} ${JSON.stringify(body)}`);
    }
    const { status, body } = await post('settle', { attempt, outcome: 'succeeded', value: `paid ${key}` });
    if (status !== 200 || body.recorded !== true)
      throw new Error(`settle: ${status} ${JSON.stringify(body)}`);
  }
}

function ask(agent: Agent, url: string, token: string, body: object, onConnect: () => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const asking = request(url, {
      agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      },
    });
    asking.on('socket', () => {
      if (!asking.reusedSocket) onConnect();
    });
    asking.on('error', (error: NodeJS.ErrnoException) => {
      // The server closes a connection that was idle for seconds, as it is where this machine is busy. The same request
      // may be sent again: a begin has its token, and reports can be repeated.
      const wasIdle = asking.reusedSocket && error.code === 'ECONNRESET';
      if (wasIdle) resolve(ask(agent, url, token, body, onConnect));
      else reject(error);
    });
    asking.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => void chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const read = Buffer.concat(chunks).toString();
        try {
          resolve({
            status: response.statusCode ?? 0,
            retryAfter: response.headers['retry-after'],
            body: JSON.parse(read) as Answer['body'],
          });
        } catch {
          reject(new Error(`${response.statusCode} ${read.slice(0, 200)}`));
        }
      });
    });
    asking.end(text);
  });
}
