// What tells people and programs about a ledger: alerts on doubt, metrics, traces.

export { type AlertEvent, describeEvent } from './alerts/event.ts';
export { makeSecret, readSecrets } from './alerts/signature.ts';
export { commandTarget, slackTarget, type Target, webhookTarget } from './alerts/target.ts';
export { type Alert, createWatch, type PassReport, type Watch, type WatchOptions } from './alerts/watch.ts';
export { contentType } from './metrics/exposition.ts';
export { createMetrics, type Metrics } from './metrics/metrics.ts';
export { findTraceparent, isTraceparent, noteField } from './traceparent.ts';
