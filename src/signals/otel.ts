// `semel/otel`: spans and metrics for OpenTelemetry, with the API that the program passes. One span per logical call, by the GenAI
// conventions; what they do not name has names of our own (`semel.…`). A replay links to the span that did the work: its
// traceparent is in the record's history, never in a key.

import type { Call, Result } from '../call/index.ts';
import { describeThrown } from '../core/contract/classify.ts';
import { SemelError } from '../core/errors.ts';
import { engineOf, type Semel } from '../semel/index.ts';
import { buckets } from './metrics/exposition.ts';
import {
  type Attributes,
  errorStatus,
  internalKind,
  type OpenTelemetryApi,
  type SpanLink,
  sampledFlag,
  type TraceSpan,
} from './otel-api.ts';
import { ownVersion } from './own-version.ts';
import { findTraceparent, noteField } from './traceparent.ts';

export type { OpenTelemetryApi } from './otel-api.ts';

const instrumented = new WeakSet<object>();
/** Traceparents by record, so that most replays of this process read nothing. */
const maxKnown = 10_000;

/**
 * Traces and counts the calls of this instance from now on. Call it once, at the start of the program, with
 * `import * as api from '@opentelemetry/api'`.
 */
export function instrument(
  semel: Pick<Semel, 'on' | 'records' | 'namespace'>,
  { trace, context, metrics }: OpenTelemetryApi,
): void {
  const engine = engineOf(semel);
  if (engine === undefined)
    throw new SemelError('INVALID_ARGS', 'instrument() expects a Semel instance.', {
      path: 'semel',
      next: 'Pass what createSemel returned.',
    });
  if (instrumented.has(semel)) return;
  instrumented.add(semel);
  const version = ownVersion();
  const tracer = trace.getTracer('semel', version);
  const meter = metrics.getMeter('semel', version);
  const calls = meter.createCounter('semel.calls', { description: 'Calls by outcome.' });
  const durations = meter.createHistogram('semel.effect.duration', {
    description: 'Calls that were executed, with all their attempts.',
    unit: 's',
    advice: { explicitBucketBoundaries: [...buckets] },
  });
  const duplicates = meter.createCounter('semel.duplicates', {
    description: 'Effects that landed a second time, at a target that does not honour keys.',
  });
  const known = new Map<string, string>();
  semel.on('duplicate', ({ namespace, contract }) =>
    duplicates.add(1, { 'semel.namespace': namespace, 'gen_ai.tool.name': contract }),
  );
  engine.wrapCalls(traceCall);

  function traceCall(call: Call, run: () => Result | Promise<Result>): Result | Promise<Result> {
    const { contract } = call.tool;
    const of = { 'gen_ai.tool.name': contract.name, 'semel.namespace': call.namespace };
    const startedAt = performance.now();
    const span = quietly(() => startSpan(call, of));
    if (span === undefined) return run();
    const finish = (result: Result): Result => {
      quietly(() => {
        const outcome = contract.mode === 'observe' ? 'observed' : outcomeOf(result);
        calls.add(1, { ...of, 'semel.outcome': outcome });
        if (outcome === 'executed') durations.record((performance.now() - startedAt) / 1_000, of);
        describeResult(span, outcome, result);
        end(span, outcome, result);
      });
      return result;
    };
    const fail = (error: unknown): never => {
      quietly(() => {
        calls.add(1, { ...of, 'semel.outcome': 'refused' });
        span.setAttributes({ 'error.type': typeOf(error) });
        span.setStatus({ code: errorStatus });
        span.end();
      });
      throw error;
    };
    let running: Result | Promise<Result>;
    try {
      // What the effect does is inside: its own requests are children.
      running = context.with(trace.setSpan(context.active(), span), run);
    } catch (error) {
      return fail(error);
    }
    return running instanceof Promise ? running.then(finish, fail) : finish(running);
  }

  function startSpan({ tool: { contract }, identity: { toolCallId } }: Call, of: Attributes): TraceSpan {
    return tracer.startSpan(`execute_tool ${contract.name}`, {
      kind: internalKind,
      attributes: {
        ...of,
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.type': 'function',
        ...(toolCallId === undefined ? {} : { 'gen_ai.tool.call.id': toolCallId }),
        'semel.effect': contract.effect,
      },
    });
  }

  /** A processor or an exporter that throws must not turn an effect that has landed into an error. */
  function quietly<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      engine.warn(`Tracing failed: ${describeThrown(error)}`);
      return undefined;
    }
  }

  /** The call does not wait for what is read or written about its trace. */
  function end(span: TraceSpan, outcome: CallOutcome, { receipt }: Result): void {
    const { key, generation } = receipt;
    const name = `${generation} ${key}`;
    const own = traceparentOf(span);
    if (outcome === 'executed' && own !== undefined && generation > 0) {
      remember(name, own);
      semel.records.annotate(key, { [noteField]: own }).catch(() => undefined);
    }
    const link = outcome === 'replayed' ? linkTo(known.get(name)) : undefined;
    if (link !== undefined) span.addLink(link);
    if (outcome !== 'replayed' || link !== undefined || !span.isRecording()) {
      span.end();
      return;
    }
    const endedAt = Date.now();
    findTraceparent(semel.records, key, generation)
      .then((found) => {
        const late = linkTo(found);
        if (found === undefined || late === undefined) return;
        remember(name, found);
        span.addLink(late);
      })
      .catch(() => undefined)
      .finally(() => span.end(endedAt));
  }

  function remember(name: string, traceparent: string): void {
    const [oldest] = known.keys();
    if (known.size >= maxKnown && oldest !== undefined) known.delete(oldest);
    known.set(name, traceparent);
  }
}

type CallOutcome = 'executed' | 'replayed' | 'in_doubt' | 'busy' | 'refused' | 'observed';

function outcomeOf({ ok, receipt, ...rest }: Result): CallOutcome {
  const code = 'error' in rest ? rest.error.code : undefined;
  if (receipt.skipped || code === 'IN_FLIGHT') return 'busy';
  if (code === 'IN_DOUBT') return 'in_doubt';
  if (receipt.replayed) return 'replayed';
  if (receipt.executed || ok) return 'executed';
  return 'refused';
}

function describeResult(span: TraceSpan, outcome: CallOutcome, result: Result): void {
  const { receipt } = result;
  const attributes: Attributes = { 'semel.outcome': outcome };
  if (receipt.fence > 0) {
    attributes['semel.record.id'] = receipt.id;
    attributes['semel.attempt'] = receipt.attempt;
  }
  if (receipt.drift.length > 0) attributes['semel.drift'] = [...receipt.drift];
  if (!result.ok) {
    attributes['error.type'] = result.error.code;
    // Its words may hold args; the code says what happened.
    span.setStatus({ code: errorStatus, message: result.error.code });
  }
  span.setAttributes(attributes);
}

function typeOf(error: unknown): string {
  return error instanceof Error ? error.name : '_OTHER';
}

/** As W3C Trace Context writes it; undefined where nothing is traced. */
function traceparentOf(span: TraceSpan): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (/^0*$/.test(traceId)) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function linkTo(traceparent: string | undefined): SpanLink | undefined {
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const traceFlags = Number.parseInt(flags, 16) & sampledFlag;
  return {
    context: { traceId, spanId, traceFlags, isRemote: true },
    attributes: { 'semel.link': 'executed_by' },
  };
}
