// `semel mcp --http … --listen 0` as a process; its address, and the ways to ask it by hand.

import { type ChildProcess, spawn } from 'node:child_process';
import { request } from 'node:http';
import { atTheEnd, eventually, main } from '../cli/place.ts';
import type { Answer } from './raw-client.ts';

export interface HttpProxyProcess {
  readonly url: string;
  readonly child: ChildProcess;
  stderr(): string;
  /** A tools/call by hand; its answer, from JSON or from events. */
  call(name: string, args?: object, options?: CallOptions): Promise<Answer>;
}

export interface CallOptions {
  readonly more?: object;
  readonly headers?: Record<string, string>;
  readonly id?: number;
  readonly signal?: AbortSignal;
}

export async function httpProxy(
  upstream: string,
  env: Record<string, string>,
  options: readonly string[] = [],
  listen = '0',
): Promise<HttpProxyProcess> {
  const args = [main, 'mcp', '--http', upstream, '--listen', listen, ...options];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  atTheEnd(() => {
    if (child.exitCode === null) child.kill('SIGKILL');
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk;
  });
  const url = await eventually(() => /listening on (\S+)/.exec(stderr)?.[1], 'listening');
  let ids = 0;
  return {
    url,
    child,
    stderr: () => stderr,
    async call(name, callArgs = {}, { more = {}, headers = {}, id, signal } = {}) {
      ids += 1;
      const params = { name, arguments: callArgs, ...more };
      const answer = await post(
        url,
        JSON.stringify({ jsonrpc: '2.0', id: id ?? ids, method: 'tools/call', params }),
        headers,
        signal,
      );
      return messageIn(answer.body) as Answer;
    },
  };
}

export interface Posted {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}

export function post(
  url: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
  method = 'POST',
): Promise<Posted> {
  const usual = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method, headers: { ...usual, ...headers }, ...(signal ? { signal } : {}) },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            body: Buffer.concat(parts).toString(),
          }),
        );
        answer.on('error', reject);
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** The message in a JSON body, or the last one of an event stream. */
export function messageIn(body: string): unknown {
  const data = body.split('\n').filter((line) => line.startsWith('data:'));
  return JSON.parse(data.at(-1)?.slice(5) ?? body);
}
