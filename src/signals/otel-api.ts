// What `semel/otel` uses of `@opentelemetry/api`, by shape: the program passes its own copy, and nobody else needs one.

export interface OpenTelemetryApi {
  readonly trace: {
    getTracer(name: string, version?: string): Tracer;
    setSpan(context: unknown, span: TraceSpan): unknown;
  };
  readonly context: {
    active(): unknown;
    with<T>(context: unknown, work: () => T): T;
  };
  readonly metrics: { getMeter(name: string, version?: string): Meter };
}

export type AttributeValue = string | number | boolean | string[];
export type Attributes = Record<string, AttributeValue>;

export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

export interface SpanLink {
  readonly context: SpanContext;
  readonly attributes?: Attributes;
}

export interface TraceSpan {
  spanContext(): SpanContext;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { readonly code: number; readonly message?: string }): unknown;
  /** Since 1.9. */
  addLink(link: SpanLink): unknown;
  isRecording(): boolean;
  end(at?: number): void;
}

interface Tracer {
  startSpan(name: string, options?: { readonly kind?: number; readonly attributes?: Attributes }): TraceSpan;
}

interface Meter {
  createCounter(
    name: string,
    options?: { readonly description?: string },
  ): { add(value: number, attributes?: Attributes): void };
  createHistogram(
    name: string,
    options?: {
      readonly description?: string;
      readonly unit?: string;
      readonly advice?: { readonly explicitBucketBoundaries?: number[] };
    },
  ): { record(value: number, attributes?: Attributes): void };
}

/** Values of its enumerations. */
export const internalKind = 0;
export const errorStatus = 2;
export const sampledFlag = 1;
