// One process with tracing: calls a tool, and prints the span of the call.

import * as api from '@opentelemetry/api';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { createSemel } from '../../src/create-semel.ts';
import { instrument } from '../../src/signals/otel.ts';

const spans = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register();
const semel = createSemel({ store: process.argv[2] as string, namespace: 'shop' });
instrument(semel, api);
await semel.once('refund', 'pay_1', () => 'done');
for (let n = 0; n < 1_000 && spans.getFinishedSpans().length === 0; n += 1)
  await new Promise((resolve) => setTimeout(resolve, 10));
await semel.close();
const [span] = spans.getFinishedSpans();
console.log(
  JSON.stringify({
    outcome: span?.attributes['semel.outcome'],
    spanId: span?.spanContext().spanId,
    links: span?.links.map((link) => link.context.spanId),
  }),
);
