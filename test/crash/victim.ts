// A process that makes one call and dies, or stands still, at the point that its job names.

import { createSemel, type Duration } from '../../src/index.ts';
import type { ClaimAnswer, CrossAnswer } from '../../src/store/index.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { dieHere, jobOf, onFinish, print, stopHere } from '../processes/child.ts';
import { hookedStore } from '../processes/hooked-store.ts';
import { movableClock } from '../processes/movable-clock.ts';
import { type Heard, heard } from './heard.ts';
import type { LineName } from './lines.ts';
import type { LaterPoint, StoppingPoint } from './points.ts';
import { toolOf } from './tools.ts';

export interface VictimJob {
  readonly ledger: string;
  readonly url: string;
  readonly line: LineName;
  readonly intent: string;
  readonly wording: string;
  readonly point: StoppingPoint | LaterPoint;
  readonly how: 'die' | 'stop';
  readonly aheadMs?: number;
  readonly lease?: Duration;
  /** Nobody can prove its death, as on another machine: its lease decides. */
  readonly isUnprovable?: boolean;
}

export type VictimLine = { readonly at: StoppingPoint | LaterPoint } | { readonly heard: Heard };

const job = jobOf<VictimJob>();

function reached(point: StoppingPoint | LaterPoint): void {
  if (point !== job.point) return;
  print({ at: point } satisfies VictimLine);
  if (job.how === 'die') dieHere();
  stopHere();
}

onFinish(() => process.exit(1));
const clock = movableClock(job.aheadMs);
const store = hookedStore(sqliteStore({ path: job.ledger, clock }), {
  before: (method) => {
    if (method === 'claim') reached('before claim');
    if (method === 'dispatch') reached('crossing');
  },
  after: (method, _request, answer) => {
    if (method === 'claim' && (answer as ClaimAnswer).won) reached('claimed');
    if (method === 'clear' && (answer as CrossAnswer).ok) reached('cleared');
    if (method === 'settle') reached('settled');
  },
});
const semel = createSemel({
  store,
  clock,
  namespace: 'crash',
  ...(job.isUnprovable ? { owner: 'victim' } : {}),
  onWarning: () => undefined,
});
const tool = toolOf(semel, job.line, {
  url: job.url,
  at: (point) => (point === 'started' ? undefined : reached(point)),
  ...(job.lease === undefined ? {} : { terms: { lease: job.lease } }),
});
const result = await tool.try({ intent: job.intent, wording: job.wording });
reached('before the reply');
print({ heard: heard(result) } satisfies VictimLine);
await semel.close();
process.exit(0);
