// Stands between a driver and a real server and does to single messages what networks do: it holds them back, tears
// them, loses them and the connection with them. Which message it hits is a rule of the test, never chance.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Direction, framersOf, type Protocol } from './frames.ts';

export type Fault =
  | 'pass'
  /** The connection ends, and the message never arrives. */
  | 'cut-before'
  /** The message arrives, and then the connection ends. */
  | 'cut-after'
  /** Half of the message arrives. */
  | 'cut-inside'
  /** Byte by byte, each a packet. */
  | 'trickle'
  /** Neither this message nor a later one of this direction arrives; the connection stays open. */
  | 'black-hole'
  | { readonly delayMs: number };

export interface Frame {
  readonly direction: Direction;
  /** Within its direction, over all connections, from 0 since the last `mark()`. */
  readonly index: number;
  readonly bytes: Buffer;
}

export type Rule = (frame: Frame) => Fault | undefined;

export interface FaultProxy extends AsyncDisposable {
  readonly port: number;
  /** The address of the server, by way of this proxy. */
  readonly url: string;
  /** For the next message of this direction, and then no more. Several wait in line. */
  next(direction: Direction, fault: Fault): void;
  /** For all messages of this direction that nothing else was said about. */
  always(direction: Direction, fault: Fault): void;
  /** Asked first; undefined leaves the message to the others. */
  rule(rule: Rule | undefined): void;
  /** New connections are closed at once. */
  refuse(isRefusing: boolean): void;
  /** No more faults. Connections that one has hit stay as they are. */
  calm(): void;
  /** Counts messages from here. */
  mark(): void;
  /** What has passed or was hit since the last `mark()`. */
  readonly frames: () => readonly Frame[];
  readonly hits: () => number;
  readonly connections: () => number;
  cutAll(): void;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  readonly url: string;
  readonly protocol: Protocol;
}

export async function startFaultProxy({ url, protocol }: FaultProxyOptions): Promise<FaultProxy> {
  const target = new URL(url);
  const inLine: Record<Direction, Fault[]> = { request: [], reply: [] };
  const standing: Record<Direction, Fault> = { request: 'pass', reply: 'pass' };
  const open = new Set<() => void>();
  let frames: Frame[] = [];
  let counts: Record<Direction, number> = { request: 0, reply: 0 };
  let hits = 0;
  let ownRule: Rule | undefined;
  let isRefusing = false;

  const seen = (direction: Direction, bytes: Buffer): Fault => {
    const frame = { direction, index: counts[direction]++, bytes };
    frames.push(frame);
    const fault = ownRule?.(frame) ?? inLine[direction].shift() ?? standing[direction];
    if (fault !== 'pass') hits++;
    return fault;
  };

  const listener = createServer({ noDelay: true }, (client) => {
    if (isRefusing) return void client.resetAndDestroy();
    const server = connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    const framers = framersOf(protocol);
    const cut = () => {
      client.destroy();
      server.destroy();
      open.delete(cut);
    };
    open.add(cut);
    const pipe = (from: Socket, to: Socket, direction: Direction) => {
      let isSwallowing = false;
      let forwarded = Promise.resolve();
      from.on('data', (chunk) => {
        for (const bytes of framers[direction](chunk)) {
          forwarded = forwarded.then(async () => {
            if (from.destroyed || to.destroyed) return;
            const fault = seen(direction, bytes);
            isSwallowing ||= fault === 'black-hole';
            if (isSwallowing) return;
            if ((await pass(bytes, to, fault)) === 'cut') cut();
          });
        }
      });
      // Whatever was said before the end arrives before it.
      from.on('end', () => void forwarded.then(() => (isSwallowing ? undefined : to.end())));
      from.on('error', cut).on('close', () => void forwarded.then(() => (isSwallowing ? undefined : cut())));
    };
    pipe(client, server, 'request');
    pipe(server, client, 'reply');
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const { port } = listener.address() as AddressInfo;
  const through = new URL(url);
  through.host = `127.0.0.1:${port}`;

  const cutAll = () => {
    for (const cut of [...open]) cut();
  };
  const close = async () => {
    cutAll();
    await once(listener.close(), 'close');
  };
  return {
    port,
    url: through.href,
    next: (direction, fault) => void inLine[direction].push(fault),
    always(direction, fault) {
      standing[direction] = fault;
    },
    rule(rule) {
      ownRule = rule;
    },
    refuse(refusing) {
      isRefusing = refusing;
    },
    calm() {
      ownRule = undefined;
      isRefusing = false;
      for (const direction of ['request', 'reply'] as const) {
        inLine[direction] = [];
        standing[direction] = 'pass';
      }
    },
    mark() {
      frames = [];
      counts = { request: 0, reply: 0 };
      hits = 0;
    },
    frames: () => frames,
    hits: () => hits,
    connections: () => open.size,
    cutAll,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function pass(bytes: Buffer, to: Socket, fault: Fault): Promise<'passed' | 'cut'> {
  if (typeof fault === 'object') await sleep(fault.delayMs);
  if (fault === 'cut-before') return 'cut';
  if (fault === 'trickle') {
    for (const byte of bytes) await write(to, Buffer.of(byte));
    return 'passed';
  }
  await write(to, fault === 'cut-inside' ? bytes.subarray(0, bytes.length >> 1) : bytes);
  return fault === 'cut-inside' || fault === 'cut-after' ? 'cut' : 'passed';
}

/** Until the system has the bytes: what is still in this process is lost when a socket is destroyed. */
function write(to: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (to.destroyed) resolve();
    else to.write(bytes, () => resolve());
  });
}

export interface Hit {
  readonly direction: Direction;
  readonly index: number;
  readonly fault: Fault;
}

/**
 * Runs the operation once without a fault to count its messages, then once for each message and each fault. `run`
 * brings its own fresh state, calls `begin` where the messages that count begin, and says afterwards what must hold.
 * Returns how many faults were set and how many of them met a message: after a cut a driver may say less.
 */
export async function faultEachFrame(
  proxy: FaultProxy,
  faults: readonly Fault[],
  run: (hit: Hit | undefined, begin: () => void) => Promise<void>,
): Promise<{ readonly runs: number; readonly hits: number }> {
  proxy.calm();
  await run(undefined, () => proxy.mark());
  const clean = proxy.frames().map(({ direction, index }) => ({ direction, index }));
  if (clean.length === 0) throw new Error('The run without a fault sent no message through the proxy.');
  let runs = 0;
  let hits = 0;
  for (const { direction, index } of clean) {
    for (const fault of faults) {
      proxy.calm();
      await run({ direction, index, fault }, () => {
        proxy.mark();
        proxy.rule((frame) => (frame.direction === direction && frame.index === index ? fault : undefined));
      });
      runs++;
      hits += Math.min(1, proxy.hits());
    }
  }
  proxy.calm();
  return { runs, hits };
}
