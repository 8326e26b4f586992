// What a run says: to a person, to a program, and for the record.

import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { type BlockResult, blockSize, type Failure, type Tally } from './block.ts';
import { faultKinds } from './faults.ts';
import { type Gap, gapsOf, impossible, renderTable, states, storeEvents } from './table.ts';

/** Every cell this often per thousand histories. */
const visitsPerThousand = 1;
/** Below it, rare cells say nothing about the simulator. */
const enoughHistories = 50_000;

export function gapsIn({ table, histories }: Tally): readonly Gap[] {
  return histories < enoughHistories ? [] : gapsOf(table, (histories / 1_000) * visitsPerThousand);
}

/** A run in which nothing succeeds passes every check: it must not. */
export function isVoid({ told, histories }: Tally): boolean {
  if (histories < blockSize) return false;
  return (told.ok ?? 0) < histories || (told.IN_DOUBT ?? 0) < histories / 20;
}

export function render(tally: Tally, seconds: number): string {
  const { histories, events, effects, failures } = tally;
  const perSecond = Math.round(histories / seconds);
  const lines = [
    `${count(histories)} histories in ${seconds.toFixed(1)} s: ${count(perSecond)} per second; ${count(events)} events, ${count(effects)} effects`,
    '',
    renderFaults(tally),
    '',
    renderTold(tally),
    '',
    renderTable(tally.table),
    '',
    ...renderGaps(gapsIn(tally)),
    isVoid(tally) ? 'void: too few calls succeeded, or too few were in doubt' : '',
    failures.length === 0 ? 'no invariant was violated' : renderFailures(failures),
  ];
  return lines.filter((line, at) => line !== '' || lines[at - 1] !== '').join('\n');
}

export function renderFaults({ faults }: Tally): string {
  const rows = faultKinds.map((kind, at) => `| ${kind} | ${count(faults[at] as number)} |`);
  return ['| fault | times |', '|---|--:|', ...rows].join('\n');
}

export function renderTold({ told }: Tally): string {
  const rows = Object.entries(told)
    .sort(([, a], [, b]) => b - a)
    .map(([code, times]) => `| ${code} | ${count(times)} |`);
  return ['| calls were told | times |', '|---|--:|', ...rows].join('\n');
}

function renderGaps(gaps: readonly Gap[]): string[] {
  return gaps.map(({ state, event, visits, why }) =>
    why === undefined
      ? `visited only ${visits} times: ${state} × ${event}`
      : `visited ${visits} times, although ${why}: ${state} × ${event}`,
  );
}

/** The shortest history of each invariant: the one to read. */
export function shortest(failures: readonly Failure[]): readonly Failure[] {
  const best = new Map<string, Failure>();
  for (const failure of failures) {
    const known = best.get(failure.invariant);
    if (known === undefined || failure.events < known.events) best.set(failure.invariant, failure);
  }
  return [...best.values()];
}

function renderFailures(failures: readonly Failure[]): string {
  const lines = shortest(failures).map(
    ({ seed, invariant, detail }) =>
      `VIOLATED ${invariant}\n  ${detail}\n  replay: npm run sim -- --histories 1 --seed ${seed} --trace`,
  );
  return [`${failures.length} violations`, ...lines].join('\n');
}

export interface Evidence {
  readonly command: string;
  readonly seed: number;
  readonly tally: Tally;
  readonly seconds: number;
  readonly threads: number;
  readonly results: readonly BlockResult[];
}

export function renderEvidence({ command, seed, tally, seconds, threads, results }: Evidence): string {
  const { histories, events, effects } = tally;
  const digests = results.map(({ digest }) => digest);
  const lines: string[] = [];
  for (let at = 0; at < digests.length; at += 10) lines.push(digests.slice(at, at + 10).join(' '));
  return `# Simulator: a clean run

Written by \`scripts/sim.ts\`; not edited. The production runner, ledger and rules on a simulated store network, clocks,
scheduler and outside world, by seed. A sample of it is run again by \`npm run sim -- --check docs/evidence/sim.md\`.

- command: \`${command}\`
- commit: ${commit()}
- seed: ${seed}
- histories: ${histories}
- events: ${events}
- effects that landed: ${effects}
- violations: ${tally.failures.length}
- machine: ${machine()}, ${threads} threads, ${Math.round(seconds)} s, ${Math.round(histories / seconds)} histories per second

## Faults

${renderFaults(tally)}

## What callers were told

${renderTold(tally)}

## State × event

How often each rule of the store met a record in each state. \`–\` cannot be:

${impossibilities()}

${renderTable(tally.table)}

## Digests

sha256 over the outcomes of each block of ${blockSize} histories, its first 8 digits, in the order of the seeds:

\`\`\`text
${lines.join('\n')}
\`\`\`
`;
}

function impossibilities(): string {
  const cells = new Map<string, number>();
  for (const state of states)
    for (const event of storeEvents) {
      const why = impossible(state, event);
      if (why !== undefined) cells.set(why, (cells.get(why) ?? 0) + 1);
    }
  return [...cells].map(([why, times]) => `- ${why} (${times} cells)`).join('\n');
}

/** What a page of evidence claims, to be compared with a run. */
export function parseEvidence(text: string): { seed: number; histories: number; digests: readonly string[] } {
  const number = (name: string) => Number(new RegExp(`^- ${name}: (\\d+)$`, 'm').exec(text)?.[1]);
  const digests = (/```text\n([\s\S]*?)```/.exec(text)?.[1] ?? '').split(/\s+/).filter(Boolean);
  return { seed: number('seed'), histories: number('histories'), digests };
}

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
    const isDirty = git('status', '--porcelain', '--untracked-files=no', '--', 'src', 'test/sim') !== '';
    return `${git('rev-parse', 'HEAD')}${isDirty ? ', with changes that are not committed' : ''}`;
  } catch {
    return 'unknown';
  }
}

function machine(): string {
  return `${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`;
}

function count(number: number): string {
  return number.toLocaleString('en');
}
