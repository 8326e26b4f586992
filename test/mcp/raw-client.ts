// A client by hand: it sends the bytes that it is told, and shows those that it gets.

import { type ChildProcess, spawn } from 'node:child_process';
import { eventually } from '../cli/place.ts';

export interface RawClient {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Sent as it is. */
  write(text: string | Buffer): void;
  /** A tools/call; its answer, parsed. */
  call(name: string, args?: object, more?: object): Promise<Answer>;
  /** Any other request; its answer, parsed. */
  request(method: string, params: object): Promise<Answer>;
  /** The answer with this id. */
  answer(id: number | string): Promise<Answer>;
  /** Closes its input. */
  leave(): void;
  stdout(): string;
  stderr(): string;
}

export interface Answer {
  readonly id: number | string | null;
  readonly result?: {
    readonly content?: readonly { readonly text: string }[];
    readonly structuredContent?: unknown;
    readonly isError?: boolean;
    readonly _meta?: Record<string, unknown>;
    readonly [other: string]: unknown;
  };
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Record<string, unknown>;
  };
}

export function rawClient(command: readonly string[], env: Record<string, string>): RawClient {
  const [program, ...args] = command;
  const child = spawn(program as string, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  const answers = new Map<string, Answer>();
  let rest = '';
  child.stdin.on('error', () => undefined);
  child.stdout.on('data', (chunk: Buffer) => {
    out.push(chunk);
    rest += chunk.toString();
    const lines = rest.split('\n');
    rest = lines.pop() as string;
    for (const line of lines) {
      try {
        for (const each of [JSON.parse(line)].flat() as Answer[]) answers.set(JSON.stringify(each.id), each);
      } catch {}
    }
  });
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  const ended = new Promise<Awaited<RawClient['ended']>>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  let ids = 1000;
  const client: RawClient = {
    child,
    ended,
    write: (text) => void child.stdin.write(text),
    call: (name, args = {}, more = {}) => client.request('tools/call', { name, arguments: args, ...more }),
    request(method, params) {
      ids += 1;
      client.write(`${JSON.stringify({ jsonrpc: '2.0', id: ids, method, params })}\n`);
      return client.answer(ids);
    },
    answer: (id) => eventually(() => answers.get(JSON.stringify(id)), `the answer ${id}`),
    leave: () => child.stdin.end(),
    stdout: () => Buffer.concat(out).toString(),
    stderr: () => Buffer.concat(err).toString(),
  };
  return client;
}
