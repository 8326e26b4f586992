// The outside world on 127.0.0.1: POST /do/<target> makes an effect, GET /effects looks for it, and the paths
// under /control belong to the test.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { EffectLog, LandedEffect } from './effect-log.ts';
import { type Sender, senderOf } from './sender.ts';
import { type Conduct, type Target, targetOf } from './target.ts';

interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: unknown;
}

interface Remembered {
  readonly since: number;
  readonly body: string;
  /** Undefined: the first request with this key is still under way. */
  answer: Answer | undefined;
}

interface TargetState {
  readonly target: Target;
  requests: number;
  readonly keys: Map<string, Remembered>;
}

/** The longest that a hanging request is kept. */
const hangMs = 10 * 60_000;

export function createEffectServer(log: EffectLog, targets: Readonly<Record<string, Target>> = {}): Server {
  const states = new Map<string, TargetState>();
  /** How far the test has moved this world's clock. */
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;

  for (const [name, target] of Object.entries(targets)) setTarget(name, target);

  return createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      // The client is gone, or the log cannot be written: either way nobody may be told that all is well.
      if (!response.headersSent && !response.destroyed) send(response, { status: 500, body: String(error) });
      else response.destroy();
    });
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://effects');
    const [, first, ...rest] = url.pathname.split('/');
    const name = decodeURIComponent(rest.join('/'));
    if (first === 'do' && request.method === 'POST') {
      const sender = senderOf(request.headers, await bodyOf(request));
      return act(name, sender, response);
    }
    if (first === 'effects' && request.method === 'GET') {
      return send(response, { status: 200, body: { effects: lookUp(url.searchParams) } });
    }
    if (first === 'control' && request.method === 'PUT') {
      const body = JSON.parse(await bodyOf(request)) as { target?: Partial<Target>; advanceMs?: number };
      if (body.target !== undefined) setTarget(name, targetOf(body.target));
      aheadMs += body.advanceMs ?? 0;
      return send(response, { status: 200, body: {} });
    }
    return send(response, { status: 404, body: { error: `Nothing at ${request.method} ${url.pathname}.` } });
  }

  async function act(name: string, sender: Sender, response: ServerResponse): Promise<void> {
    const state = states.get(name) ?? setTarget(name, targetOf());
    const memory = state.target.keyed;
    const key = memory === null ? null : sender.providerKey;
    if (memory !== null && key !== null) {
      const known = recall(state, key, memory.windowMs);
      if (known !== undefined) return send(response, replay(known, sender));
      state.keys.set(key, { since: now(), body: sender.body, answer: undefined });
    }
    const conduct = state.target.first[state.requests] ?? state.target.usually;
    state.requests += 1;

    if (conduct.delayMs) await delay(conduct.delayMs);
    const effect = conduct.commits ? land(name, sender) : undefined;
    const answer = answerOf(conduct, effect);
    if (key !== null) remember(state, key, answer, effect !== undefined);
    if (conduct.answerAfterMs) await delay(conduct.answerAfterMs);

    if (conduct.ends === 'cut') response.socket?.destroy();
    else if (conduct.ends === 'hang') await hang(response);
    else send(response, answer);
  }

  function land(target: string, sender: Sender): LandedEffect {
    return log.append({ at: Date.now(), target, ...sender });
  }

  function recall(state: TargetState, key: string, windowMs: number): Remembered | undefined {
    const known = state.keys.get(key);
    if (known === undefined || now() < known.since + windowMs) return known;
    state.keys.delete(key);
    return undefined;
  }

  function remember(state: TargetState, key: string, answer: Answer, landed: boolean): void {
    const known = state.keys.get(key);
    if (known === undefined) return;
    if (landed || state.target.keyed?.keepsErrors) known.answer = answer;
    else state.keys.delete(key);
  }

  function lookUp(query: URLSearchParams): readonly LandedEffect[] {
    const asked = [...query] as [keyof LandedEffect, string][];
    return log.landed.filter(
      (effect) =>
        effect.at <= Date.now() - (states.get(effect.target)?.target.lookupLagMs ?? 0) &&
        asked.every(([field, value]) => String(effect[field]) === value),
    );
  }

  function setTarget(name: string, target: Target): TargetState {
    // What it remembers of keys outlives a change of manners.
    const state = { target, requests: 0, keys: states.get(name)?.keys ?? new Map<string, Remembered>() };
    states.set(name, state);
    return state;
  }
}

function replay(known: Remembered, sender: Sender): Answer {
  if (known.answer === undefined) {
    return { status: 409, body: { error: 'A request with this key is being processed.' } };
  }
  if (known.body !== sender.body) {
    return { status: 422, body: { error: 'This key was used with another request.' } };
  }
  return { ...known.answer, headers: { ...known.answer.headers, 'idempotent-replayed': 'true' } };
}

function answerOf({ status = 200, retryAfterSeconds }: Conduct, effect: LandedEffect | undefined): Answer {
  return {
    status,
    ...(retryAfterSeconds === undefined ? {} : { headers: { 'retry-after': String(retryAfterSeconds) } }),
    body: effect === undefined || status >= 400 ? { error: `Answered ${status}.` } : { effect: effect.seq },
  };
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

async function hang(response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  await delay(hangMs, undefined, { signal: gone.signal, ref: false }).catch(() => undefined);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
