// Traces over HTTP: which span did the work is known to programs in other languages, and theirs to the library.

import { expect, onTestFinished, test } from 'vitest';
import { createSemel } from '../../src/index.ts';
import { overrideStore } from '../../src/semel/index.ts';
import { digestToken, startServer } from '../../src/server/index.ts';
import { instrument, type OpenTelemetryApi } from '../../src/signals/otel.ts';
import { memoryStore } from '../../src/store/memory.ts';

const token = 'a-token-that-is-long-enough-to-be-one-of-them';
const trace = (n: number) => ({ traceId: `${n}`.repeat(32), spanId: `${n}`.repeat(16), traceFlags: 1 });
const header = (n: number) => `00-${`${n}`.repeat(32)}-${`${n}`.repeat(16)}-01`;

async function open() {
  const store = memoryStore();
  const server = await startServer({
    store,
    policies: { version: 1, tools: { refund: { effect: 'irreversible', per: 'ever' } } },
    tokens: [{ name: 'ci', role: 'admin', namespace: 'shop', sha256: digestToken(token) }],
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
  });
  onTestFinished(() => server.close(0));
  const send = async (path: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${server.url}${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
    return (await answer.json()) as any;
  };
  const begin = (args: string, traceparent?: string) =>
    send('/v1/begin', { tool: 'refund', args }, traceparent === undefined ? {} : { traceparent });
  const semel = createSemel({
    store: overrideStore(store, { close: async () => undefined }),
    namespace: 'shop',
    onWarning: () => undefined,
  });
  onTestFinished(() => semel.close({ grace: 0 }));
  const refund = semel.tool({ name: 'refund', effect: 'irreversible', per: 'ever', run: async () => 're_1' });
  return { send, begin, semel, refund };
}

/** One span after the other, with what they link to. */
function tracer(first: number): { api: OpenTelemetryApi; links: string[] } {
  const links: string[] = [];
  let next = first;
  const span = () => {
    const own = trace(next);
    next += 1;
    return {
      spanContext: () => own,
      isRecording: () => true,
      setAttributes: () => undefined,
      setStatus: () => undefined,
      addLink: ({ context }: { readonly context: { readonly traceId: string } }) =>
        links.push(context.traceId),
      end: () => undefined,
    };
  };
  const instrumentOf = { add: () => undefined, record: () => undefined };
  const api = {
    trace: { getTracer: () => ({ startSpan: span }), setSpan: (context: unknown) => context },
    context: { active: () => ({}), with: (_: unknown, run: () => unknown) => run() },
    metrics: { getMeter: () => ({ createCounter: () => instrumentOf, createHistogram: () => instrumentOf }) },
  };
  return { api: api as unknown as OpenTelemetryApi, links };
}

test('a replay in another language is told the span that did the work', async () => {
  const { send, begin } = await open();
  const first = await begin('p1', header(1));
  expect(first.outcome).toBe('execute');
  await send('/v1/settle', { attempt: first.attempt, outcome: 'succeeded', value: 're_1' });
  expect(await begin('p1', header(2))).toMatchObject({ outcome: 'replay', traceparent: header(1) });
  // Neither a key nor an answer depends on it, and nobody who does not trace pays for it.
  expect('traceparent' in (await begin('p1'))).toBe(false);
  const { history } = await send(`/v1/record?ref=${encodeURIComponent(first.recordKey)}`);
  const noted = history.filter(({ type }: { readonly type: string }) => type === 'noted');
  expect(noted).toMatchObject([{ detail: { traceparent: header(1) } }]);
});

test('what is not a traceparent is not kept', async () => {
  const { send, begin } = await open();
  const wrong = ['x', header(0), header(1).toUpperCase().replace('01', '0G'), `01${header(1).slice(2)}`];
  for (const [at, traceparent] of [...wrong, `${header(1)}, ${header(2)}`].entries()) {
    const { recordKey } = await begin(`p${at}`, traceparent);
    const { history } = await send(`/v1/record?ref=${encodeURIComponent(recordKey)}`);
    expect(JSON.stringify(history)).not.toContain('noted');
  }
});

test('a replay in the library links to the span of a client, and the other way round', async () => {
  const { send, begin, semel, refund } = await open();
  const { api, links } = tracer(3);
  instrument(semel, api);
  const { attempt, recordKey } = await begin('by HTTP', header(1));
  await send('/v1/settle', { attempt, outcome: 'succeeded', value: 're_1' });
  // Notes are written in batches, a moment later.
  await send(`/v1/record?ref=${encodeURIComponent(recordKey)}`);
  expect(await refund('by HTTP')).toBe('re_1');
  await expect.poll(() => links).toEqual([trace(1).traceId]);
  await refund('by the library');
  await expect.poll(async () => (await begin('by the library', header(2))).traceparent).toBe(header(4));
});
