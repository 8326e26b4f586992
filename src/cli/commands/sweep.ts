// `semel sweep`: settles what is in doubt with the tools of a user's module, unattended. The command itself decides nothing:
// it has neither the tools nor their `verify`.

import { setTimeout as pause } from 'node:timers/promises';
import { recordId } from '../../core/key/key.ts';
import type { Semel, SweepReport } from '../../semel/index.ts';
import { flagReader, maxTimerMs } from '../args/flag-values.ts';
import { exitSoon, exportsOf, instancesIn } from '../args/module.ts';
import { mustBeOperator } from '../caller.ts';
import { command } from '../command.ts';
import { text, toggle } from '../flags.ts';
import { print, printable, printJson } from '../render/print.ts';
import { usageError } from '../usage.ts';

export default command({
  name: 'sweep',
  takes: '<module> [options]',
  about: `Settles what is in doubt without waiting for the next call. Loads the module, which must export what createSemel returned; for
each record in doubt asks the tool's verify, or runs it again where the provider honours the key, and executes what did
not land. The module says which ledger is used. Records of semel run and semel once stay as they are: their next start
asks their --verify.`,
  flags: {
    tool: text('<name>', 'only this contract'),
    'no-execute': toggle('only find out: what did not land is executed by the next call'),
    every: text('<duration>', 'sweep again and again, with this pause, until interrupted'),
    'exit-code': toggle('exit with 1 if anything stays in doubt, for monitoring'),
  },
  examples: [
    'semel sweep ./tools.js',
    'semel sweep ./tools.ts --tool refund.create --no-execute --exit-code',
  ],
  async run({ values, positionals }) {
    mustBeOperator('sweep', 'Settling what is in doubt');
    const [path, ...more] = positionals;
    if (path === undefined || more.length > 0)
      throw usageError(
        'sweep',
        'name the module that exports your Semel instance',
        'For example: semel sweep ./tools.js',
      );
    if (values.store !== undefined)
      throw usageError('sweep', 'takes no --store', 'The module chooses its ledger.');
    const everyMs = flagReader('sweep', values).duration('every', undefined, { from: 1_000, to: maxTimerMs });
    const instances = instancesIn(exportsOf(path), path, values.namespace);
    const once = () => sweepAll(instances, values);
    let open: number;
    try {
      open = await once();
      if (everyMs !== undefined) open = await repeat(everyMs, once, open);
    } finally {
      for (const semel of instances) await semel.close();
    }
    const code = values['exit-code'] && open > 0 ? 1 : 0;
    exitSoon(code);
    return code;
  },
});

/** Ends on SIGINT or SIGTERM, after the sweep that is running. */
async function repeat(everyMs: number, once: () => Promise<number>, before: number): Promise<number> {
  const ending = new AbortController();
  const end = () => ending.abort();
  process.on('SIGINT', end).on('SIGTERM', end);
  let open = before;
  try {
    for (;;) {
      await pause(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
      if (ending.signal.aborted) return open;
      open = await once();
    }
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

interface Choice {
  readonly tool: string | undefined;
  readonly 'no-execute': boolean | undefined;
  readonly json: boolean | undefined;
}

interface Line {
  readonly namespace: string;
  readonly contract: string;
  readonly id: string;
  readonly key: string;
  readonly as: 'landed' | 'notLanded' | 'open';
  readonly executed: boolean;
  /** Why it stays open. */
  readonly because?: string;
}

/** How many stay in doubt. */
async function sweepAll(instances: readonly Semel[], { tool, json, ...choice }: Choice): Promise<number> {
  const total = { landed: 0, notLanded: 0, open: 0 };
  for (const { namespace, doubts } of instances) {
    const say = (line: Omit<Line, 'namespace' | 'id'>) => {
      const whole = { namespace, id: recordId(namespace, line.key), ...line };
      if (json) printJson(whole);
      else print(printable(describe(whole)));
    };
    const report: SweepReport = await doubts.sweep({
      execute: !choice['no-execute'],
      ...(tool === undefined ? {} : { contract: tool }),
      onSettled: ({ contract, key, as, executed }) => say({ contract, key, as, executed }),
      onOpen: ({ contract, key, error }) =>
        say({ contract, key, as: 'open', executed: false, because: error?.message ?? noTool }),
    });
    for (const as of ['landed', 'notLanded', 'open'] as const) total[as] += report[as];
  }
  if (!json) print(describeTotal(total));
  return total.open;
}

const noTool = 'the module has no tool that can decide it, or its args were not stored';

function describe({ contract, id, as, executed, because }: Line): string {
  const name = `${contract} ${id}`;
  if (as === 'landed') return `${name}: landed, ${executed ? 'executed now' : 'found out'}`;
  if (as === 'notLanded')
    return `${name}: did not land${executed ? ', executed now and refused' : ', the next call executes'}`;
  return `${name}: still in doubt: ${because}`;
}

function describeTotal({ landed, notLanded, open }: SweepReport): string {
  if (landed + notLanded + open === 0) return 'Nothing is in doubt.';
  const rest =
    open === 0 ? 'Nothing is in doubt any more.' : `${open} still in doubt: semel doubt lists them.`;
  return `${landed} landed, ${notLanded} did not. ${rest}`;
}
