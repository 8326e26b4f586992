// Traces and metrics with the real OpenTelemetry API and SDK: one span per logical call, links to the span that did the work.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as api from '@opentelemetry/api';
import { context, metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { createSemel, type Semel } from 'semel';
import { memoryStore } from 'semel/memory';
import { instrument } from 'semel/otel';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';

const spans = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const figures = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const meters = new MeterProvider({
  readers: [new PeriodicExportingMetricReader({ exporter: figures, exportIntervalMillis: 3_600_000 })],
});
beforeAll(() => {
  provider.register();
  metrics.setGlobalMeterProvider(meters);
});
beforeEach(() => spans.reset());
afterAll(async () => {
  await provider.shutdown();
  await meters.shutdown();
  trace.disable();
  context.disable();
  metrics.disable();
});

function shop(options: Parameters<typeof createSemel>[0] = {}) {
  const semel = createSemel({
    store: memoryStore(),
    namespace: 'shop',
    onWarning: () => undefined,
    ...options,
  });
  onTestFinished(() => semel.close({ grace: 0 }));
  instrument(semel, api);
  return { semel, mail: mailOf(semel) };
}

function mailOf(semel: Semel) {
  return semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['to'],
    content: ['body'],
    run: ({ to }: { to: string; body?: string }) => {
      if (to.startsWith('lost')) throw new Error('socket hang up with a secret');
      return trace.getTracer('test').startActiveSpan('POST', (span) => {
        span.end();
        return to;
      });
    },
  });
}

async function finished(count: number): Promise<readonly ReadableSpan[]> {
  await expect.poll(() => spans.getFinishedSpans().length).toBe(count);
  return spans.getFinishedSpans();
}

test('a call is one span by the conventions, and what its effect does is inside', async () => {
  const { mail } = shop();
  const { id } = (await mail.try({ to: 'ann' }, { toolCallId: 'call_1' })).receipt;
  const [inner, span] = await finished(2);
  expect(span).toMatchObject({ name: 'execute_tool mail.send', kind: SpanKind.INTERNAL });
  expect(span?.attributes).toEqual({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'mail.send',
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.call.id': 'call_1',
    'semel.namespace': 'shop',
    'semel.effect': 'write-non-idempotent',
    'semel.outcome': 'executed',
    'semel.record.id': id,
    'semel.attempt': 1,
  });
  expect(inner?.parentSpanContext?.spanId).toBe(span?.spanContext().spanId);
});

test('the span covers all attempts of a logical call, and is a child of what called it', async () => {
  const { semel } = shop();
  let tries = 0;
  const flaky = semel.tool({
    name: 'flaky',
    effect: 'write-idempotent',
    retry: { tries: 3, backoff: '1ms' },
    run: (_: { n: number }) => {
      tries += 1;
      if (tries < 3) throw new Error('again');
      return 'ok';
    },
  });
  await trace.getTracer('test').startActiveSpan('agent', async (span) => {
    await flaky({ n: 1 });
    span.end();
  });
  const [call, agent] = await finished(2);
  expect(tries).toBe(3);
  expect(call?.parentSpanContext?.spanId).toBe(agent?.spanContext().spanId);
});

test('a replay links to the span that did the work, and says what was worded differently', async () => {
  const { mail } = shop();
  await mail({ to: 'ann', body: 'Hello' });
  await mail({ to: 'ann', body: 'Hi' });
  const [, first, replay] = await finished(3);
  expect(replay?.attributes).toMatchObject({ 'semel.outcome': 'replayed', 'semel.drift': ['body'] });
  expect(replay?.links.map((link) => link.context.spanId)).toEqual([first?.spanContext().spanId]);
  expect(first?.links).toEqual([]);
  expect(replay?.spanContext().traceId).not.toBe(first?.spanContext().traceId);
});

test('errors have the type of their code, and spans hold neither args nor messages', async () => {
  const { mail } = shop();
  await mail.try({ to: 'lost-canary' });
  await mail.try({ to: 'lost-canary' });
  const [first, second] = await finished(2);
  for (const span of [first, second]) {
    expect(span?.attributes).toMatchObject({ 'semel.outcome': 'in_doubt', 'error.type': 'IN_DOUBT' });
    expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'IN_DOUBT' });
    const shown = [span?.name, span?.attributes, span?.status, span?.events];
    expect(JSON.stringify(shown)).not.toMatch(/canary|secret/);
  }
});

test('observed calls and reads are told apart', async () => {
  const { mail, semel } = shop({ mode: 'observe' });
  await mail({ to: 'ann' });
  await semel.tool({ name: 'look', effect: 'read', run: (_: { n: number }) => 1 })({ n: 1 });
  const all = await finished(3);
  const byName = (name: string) => all.find((span) => span.name === name)?.attributes;
  expect(byName('execute_tool mail.send')).toMatchObject({ 'semel.outcome': 'observed' });
  expect(byName('execute_tool look')).toMatchObject({ 'semel.effect': 'read' });
});

test('a tool that another tool calls, and what a caller executes itself, are traced once each', async () => {
  const { semel, mail } = shop();
  await semel.once('outer', 1, () => mail({ to: 'bob' }));
  const external = semel.tool({
    name: 'external',
    effect: 'irreversible',
    per: 'ever',
    run: (_: { n: number }) => 1,
  });
  const begun = await semel.begin(external, { n: 1 });
  if (begun.execute) await begun.attempt.succeed(1);
  const all = await finished(4);
  const names = all.map(({ name }) => name);
  expect(names.toSorted()).toEqual([
    'POST',
    'execute_tool external',
    'execute_tool mail.send',
    'execute_tool outer',
  ]);
  const outer = all.find(({ name }) => name === 'execute_tool outer');
  const inner = all.find(({ name }) => name === 'execute_tool mail.send');
  expect(inner?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId);
});

test('instrumenting twice traces once, and nothing else is taken', async () => {
  const { semel, mail } = shop();
  instrument(semel, api);
  await mail({ to: 'ann' });
  await finished(2);
  expect(() => instrument({} as never, api)).toThrow('expects a Semel instance');
});

test('tracing that throws changes no outcome, and runs nothing twice', async () => {
  const warnings: string[] = [];
  const broken = (at: 'startSpan' | 'setAttributes') => {
    const real = trace.getTracer('broken');
    const fail = () => {
      throw new Error('exporter');
    };
    const startSpan = (name: string) => Object.assign(real.startSpan(name), { setAttributes: fail });
    return {
      ...api,
      trace: {
        ...trace,
        setSpan: trace.setSpan,
        getTracer: () => ({ startSpan: at === 'startSpan' ? fail : startSpan }),
      },
    };
  };
  for (const at of ['startSpan', 'setAttributes'] as const) {
    const semel = createSemel({
      store: memoryStore(),
      namespace: 'shop',
      onWarning: (text) => void warnings.push(text),
    });
    onTestFinished(() => semel.close({ grace: 0 }));
    instrument(semel, broken(at));
    let runs = 0;
    const count = () => {
      runs += 1;
      return runs;
    };
    expect(await semel.once('count', 1, count)).toBe(1);
    expect(await semel.once('count', 1, count)).toBe(1);
    expect(runs).toBe(1);
  }
  expect(warnings.filter((text) => text.includes('Tracing failed'))).toHaveLength(2);
});

test('calls and durations are metrics, without keys', async () => {
  const { mail } = shop({ namespace: 'metered' });
  for (const to of ['ann', 'ann', 'lost-1']) await mail.try({ to });
  await meters.forceFlush();
  const [calls, durations] = ['semel.calls', 'semel.effect.duration'].map((name) =>
    figures
      .getMetrics()
      .at(-1)
      ?.scopeMetrics.flatMap((scope) => scope.metrics)
      .find(({ descriptor }) => descriptor.name === name),
  );
  const own = (calls?.dataPoints ?? []).filter(
    ({ attributes }) => attributes['semel.namespace'] === 'metered',
  );
  expect(own.map(({ attributes, value }) => [attributes['semel.outcome'], value])).toEqual([
    ['executed', 1],
    ['replayed', 1],
    ['in_doubt', 1],
  ]);
  expect(Object.keys(own[0]?.attributes ?? {}).toSorted()).toEqual([
    'gen_ai.tool.name',
    'semel.namespace',
    'semel.outcome',
  ]);
  expect(durations?.descriptor.unit).toBe('s');
});

test('a replay in another process links to the span of the first one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'semel-otel-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const root = join(import.meta.dirname, '../..');
  const program = join(root, 'test/signals/traced-process.ts');
  const run = async () => {
    const child = spawn(process.execPath, [program, `sqlite:${join(folder, 'ledger.db')}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    await once(child, 'close');
    return JSON.parse(text) as {
      readonly outcome: string;
      readonly spanId: string;
      readonly links: readonly string[];
    };
  };
  const first = await run();
  const second = await run();
  expect(first).toMatchObject({ outcome: 'executed', links: [] });
  expect(second).toMatchObject({ outcome: 'replayed', links: [first.spanId] });
  writeFileSync(join(folder, 'done'), '');
});
