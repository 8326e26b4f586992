// What a bench says: figures, ratios against goals, exact counters; as a table in the terminal and as evidence.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import type { Figure } from './measure.ts';

export interface Ratio {
  readonly what: string;
  readonly value: number;
  /** None: it is there to compare with. */
  readonly goal?: { readonly direction: 'at least' | 'at most'; readonly value: number };
}

export interface Section {
  readonly title: string;
  readonly figures: readonly Figure[];
  readonly ratios: readonly Ratio[];
}

export function print(sections: readonly Section[]): void {
  process.stdout.write(`${markdown(sections)}\n`);
}

function judged({ value, goal }: Ratio): string {
  if (goal === undefined) return '';
  const isReached = goal.direction === 'at least' ? value >= goal.value : value <= goal.value;
  return ` (goal: ${goal.direction} ${goal.value}; ${isReached ? 'reached' : 'NOT reached'})`;
}

function markdown(sections: readonly Section[]): string {
  return sections
    .map(({ title, figures, ratios }) => {
      const rates = figures.map(
        (f) => `| ${f.name} | ${whole(f.perSecond)} | ${whole(f.lowest)}–${whole(f.highest)} |`,
      );
      const table =
        rates.length === 0 ? [] : ['| | per second | lowest–highest |', '|---|---:|---:|', ...rates, ''];
      const goals = ratios.map((r) => `- ${r.what}: **${shown(r.value)}**${judged(r)}`);
      return [`## ${title}`, '', ...table, ...goals, ''].join('\n');
    })
    .join('\n');
}

export function writeEvidence(sections: readonly Section[], command: string, rounds: number): void {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  const head = [
    '# Bench',
    '',
    `Written by \`${command}\` at commit ${commit} on ${new Date().toISOString().slice(0, 10)}: ${machine}. Medians of ${rounds} interleaved rounds.`,
    '',
  ];
  writeFileSync(
    new URL('../docs/evidence/bench.md', import.meta.url),
    `${head.join('\n')}\n${markdown(sections)}`,
  );
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Shares of a transaction would all be 0.02. */
function shown(value: number): string {
  return value > 0 && value < 0.1 ? value.toPrecision(2) : value.toFixed(2);
}
