// A process that holds one claim until somebody kills it, or looks at the claim of another and says what it heard.

import { createSemel, landed, notLanded, type Semel } from '../../src/index.ts';
import { jobOf, onFinish, print } from '../processes/child.ts';

export interface HolderJob {
  readonly ledger: string;
  readonly id: string;
  /** How it makes the call. `look`: once, without waiting for a holder. */
  readonly how: 'tool' | 'via fetch' | 'begin' | 'named' | 'look';
  readonly verify?: 'landed' | 'not landed';
  readonly dispatch?: 'explicit';
  readonly maxAttempts?: number;
}

export type HolderLine = { readonly holds: string } | { readonly heard: string };

/** Nobody waits for such a lease. */
export function toolOf(
  semel: Semel,
  { how, verify, dispatch, maxAttempts }: HolderJob,
  run: () => unknown,
  ifBusy: 'fail' | 'wait' = 'fail',
) {
  return semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    lease: '6h',
    timeout: '10m',
    ifBusy,
    ...(how === 'via fetch' ? { via: 'fetch' } : {}),
    ...(dispatch === undefined ? {} : { dispatch }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    run: (_: { id: string }) => run(),
    ...(verify === undefined ? {} : { verify: () => (verify === 'landed' ? landed('found') : notLanded()) }),
  });
}

export function openSemel({ ledger, how }: Pick<HolderJob, 'ledger' | 'how'>): Semel {
  const owner = how === 'named' ? { owner: 'worker-7' } : {};
  return createSemel({ store: `sqlite:${ledger}`, namespace: 'crash', onWarning: () => undefined, ...owner });
}

async function hold(job: HolderJob): Promise<void> {
  const semel = openSemel(job);
  const forever = new Promise<never>(() => setInterval(() => undefined, 60_000));
  const run = () => {
    print({ holds: job.id } satisfies HolderLine);
    return forever;
  };
  const tool = toolOf(semel, job, job.how === 'look' ? () => 'executed' : run);
  if (job.how === 'begin') {
    await semel.begin(tool, { id: job.id });
    await run();
  }
  const result = await tool.try({ id: job.id });
  print({ heard: result.ok ? String(result.value) : result.error.code } satisfies HolderLine);
  await semel.close();
  process.exit(0);
}

if (process.argv[1] === import.meta.filename && process.argv[2] !== undefined) {
  onFinish(() => process.exit(1));
  await hold(jobOf<HolderJob>());
}
