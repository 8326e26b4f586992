// The incidents of the demo, in order.

import { doubleClick } from './double-click.ts';
import type { Incident } from './incident.ts';
import { killedJob } from './killed-job.ts';
import { refund } from './refund.ts';

export const incidents: readonly Incident[] = [refund, killedJob, doubleClick];
