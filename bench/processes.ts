// Several processes on one SQLite file, each an agent that thinks between its calls: how much longer the slowest calls
// take than alone, and whether every process gets its share.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { ledgerFolder } from './ledger-folder.ts';
import { measure, median, p99 } from './measure.ts';
import type { Order, Report } from './one-process.ts';
import { atLeast, atMost, type Section } from './report.ts';

const count = 8;
const order: Order = { forMs: 3_000, thinkMs: 5 };

export async function processes(rounds: number): Promise<readonly Section[]> {
  using folder = ledgerFolder();
  const children: ChildProcess[] = [];
  try {
    // One after the other: the first makes the ledger.
    for (let n = 0; n < count; n += 1) children.push(await started(folder.path('shared.db'), n));

    const alone: number[] = [];
    const among: number[] = [];
    const shares: number[] = [];
    const figures = await measure(rounds, [
      {
        name: 'one process',
        isElsewhere: true,
        async run() {
          const { ms } = await work(children[0] as ChildProcess);
          alone.push(...ms);
          return ms.length;
        },
      },
      {
        name: `${count} processes`,
        isElsewhere: true,
        async run() {
          const reports = await Promise.all(children.map(work));
          const calls = reports.map(({ ms }) => ms.length);
          for (const { ms } of reports) among.push(...ms);
          shares.push(Math.min(...calls) / Math.max(...calls));
          return calls.reduce((sum, each) => sum + each, 0);
        },
      },
    ]);
    return [
      {
        title: `SQLite, ${count} processes on one file, ${order.thinkMs} ms between calls`,
        figures,
        ratios: [
          {
            what: `p99 of a call, ${count} processes / one process`,
            value: p99(among) / p99(alone),
            goal: atMost(2),
          },
          {
            what: 'smallest share / largest share of the calls (median of the rounds)',
            value: median(shares),
            goal: atLeast(0.8),
          },
          { what: 'the same in the worst round', value: Math.min(...shares) },
          { what: `p99 of a call, one process, in ms (of ${alone.length})`, value: p99(alone) },
          { what: `p99 of a call, ${count} processes, in ms (of ${among.length})`, value: p99(among) },
        ],
      },
    ];
  } finally {
    await Promise.all(children.map(ended));
  }
}

async function started(path: string, number: number): Promise<ChildProcess> {
  const child = fork(new URL('./one-process.ts', import.meta.url), [path, String(number)]);
  await answer(child);
  return child;
}

/** Before the folder goes: a process that closes its ledger still writes there. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  if (child.connected) child.disconnect();
  await exit;
}

function work(child: ChildProcess): Promise<Report> {
  child.send(order);
  return answer(child);
}

/** The next word of a process; it must not have ended before. */
async function answer(child: ChildProcess): Promise<Report> {
  const over = new AbortController();
  const { signal } = over;
  try {
    const [report] = await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }).then(([code]) => {
        throw new Error(`A process of the bench ended with ${code}.`);
      }),
    ]);
    return report as Report;
  } finally {
    over.abort();
  }
}
