// Time and chance, injected everywhere so that the simulator can run the production code.

import { randomFillSync } from 'node:crypto';
import { runBeforeExit } from './before-exit.ts';
import { SemelError } from './errors.ts';

export interface Clock {
  /** Wall clock in milliseconds since the epoch. */
  now(): number;
  /** Milliseconds of a clock that all processes of this boot share and no step of the wall clock moves. */
  mono(): number;
  /** A timer that somebody waits for keeps the process alive; one in the background does not. */
  setTimeout(run: () => void, ms: number, background?: 'background'): unknown;
  clearTimeout(timer: unknown): void;
  /** Does this when the process ends by itself. Returns how to forget it. A clock of a simulation has no process of its own. */
  beforeExit?(work: () => void): () => void;
}

/**
 * Taken now: a test may fake it later, and a lease does not end by a fake clock. Not `performance`: loading it takes a
 * command 2 ms of its start.
 */
const sinceBoot = process.hrtime.bind(process);

export const systemClock: Clock = {
  now: () => Date.now(),
  mono() {
    const [seconds, nanoseconds] = sinceBoot();
    return seconds * 1000 + nanoseconds / 1e6;
  },
  setTimeout: (run, ms, background) => {
    const start = (then: () => void, part: number) => {
      const timer = setTimeout(then, part);
      return background === undefined ? timer : timer.unref();
    };
    return ms <= longestMs ? start(run, ms) : new LongTimer(start, run, ms);
  },
  clearTimeout: (timer) => clearTimeout(timer instanceof LongTimer ? timer.part : (timer as NodeJS.Timeout)),
  beforeExit: runBeforeExit,
};

/** One moment, by both clocks of this process. */
export class Moment {
  readonly mono: number;
  readonly wall: number;

  constructor(clock: Clock) {
    this.mono = clock.mono();
    this.wall = clock.now();
  }

  /** At the most: the monotonic clock stops while the machine sleeps, and the wall clock may be set back. */
  passedMs(clock: Clock): number {
    return Math.max(clock.mono() - this.mono, clock.now() - this.wall);
  }
}

/** Node fires a longer timer at once. */
const longestMs = 2 ** 31 - 1;

/** One timer after the other, until the time is up. */
class LongTimer {
  part: NodeJS.Timeout;

  constructor(start: (then: () => void, ms: number) => NodeJS.Timeout, run: () => void, ms: number) {
    const next = (left: number): NodeJS.Timeout =>
      left <= longestMs
        ? start(run, left)
        : start(() => {
            this.part = next(left - longestMs);
          }, longestMs);
    this.part = next(ms);
  }
}

/** Rejects after the timeout, so that a server that does not answer cannot block its callers forever. */
export function withTimeout<T>(answer: Promise<T>, clock: Clock, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimeout(
      () => reject(new Error(`no answer within ${timeoutMs} ms`)),
      timeoutMs,
      'background',
    );
    answer.then(resolve, reject).finally(() => clock.clearTimeout(timer));
  });
}

export interface Random {
  /** Fresh for every claim; 64 bits, since it is only ever compared with the other tokens of one key. */
  token(): string;
  /** In [0, 1), for jitter. */
  fraction(): number;
}

const tokenBytes = 8;
const pool = Buffer.alloc(512 * tokenBytes);
let used = pool.length;

/**
 * A process may be started from a snapshot of its memory, and more than once: a sandbox that is cloned, Node's own startup
 * snapshot. Its copies have the same pool, and two claims of one key under one token would both win. So what is drawn
 * depends on the moment too.
 */
export const systemRandom: Random = {
  token() {
    // One call for many tokens: each by itself would cost more than the rest of a replay.
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    const at = used;
    used += tokenBytes;
    const [, nanoseconds] = sinceBoot();
    pool.writeUInt32LE((pool.readUInt32LE(at) ^ nanoseconds) >>> 0, at);
    pool.writeUInt32LE((pool.readUInt32LE(at + 4) ^ Date.now()) >>> 0, at + 4);
    return pool.toString('hex', at, used);
  },
  fraction() {
    const [, nanoseconds] = sinceBoot();
    return (Math.random() + nanoseconds / 1e9) % 1;
  },
};

/** Milliseconds since the epoch. An empty text or list would be read as 1970, so only a Date or a number is taken. */
export function toInstant(path: string, value: Date | number | undefined): number | undefined {
  if (value === undefined) return undefined;
  // By its tag: a Date of another realm is one too.
  const isDate = Object.prototype.toString.call(value) === '[object Date]';
  const ms = isDate || typeof value === 'number' ? Number(value) : Number.NaN;
  if (Number.isFinite(ms)) return ms;
  throw new SemelError('INVALID_ARGS', `\`${path}\` is not an instant.`, {
    path,
    next: 'Pass a Date or milliseconds since the epoch.',
  });
}
