// `semel/prometheus`: the figures of this process, for an endpoint of one's own.

import { SemelError } from '../core/errors.ts';
import { engineOf, type Semel } from '../semel/index.ts';
import { contentType } from './metrics/exposition.ts';
import { createMetrics } from './metrics/metrics.ts';
import { ownVersion } from './own-version.ts';

export interface PrometheusMetrics {
  /** The response's Content-Type. */
  readonly contentType: string;
  /** What Prometheus reads. The open records come from the ledger, at most every five seconds. */
  text(): Promise<string>;
  /** Ends counting. */
  stop(): void;
}

/** Counts the calls of this instance from now on: call it once, at the start of the program. */
export function prometheus(semel: Pick<Semel, 'on' | 'namespace'>): PrometheusMetrics {
  const engine = engineOf(semel);
  if (engine === undefined)
    throw new SemelError('INVALID_ARGS', 'prometheus() expects a Semel instance.', {
      path: 'semel',
      next: 'Pass what createSemel returned.',
    });
  const metrics = createMetrics({
    store: engine.store,
    version: ownVersion(),
    namespaces: [semel.namespace],
  });
  const stop = metrics.listen(semel);
  return { contentType, text: () => metrics.text(), stop };
}
