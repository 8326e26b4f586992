// What a bench prints: rates with their CPU time, ratios beside their goals; as tables in the terminal and as evidence.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { type Figure, median } from './measure.ts';

export interface Ratio {
  readonly what: string;
  readonly value: number;
  /** None: it is there to compare with. */
  readonly goal?: Goal;
}

export interface Goal {
  readonly direction: 'at least' | 'at most';
  readonly value: number;
}

export interface Section {
  readonly title: string;
  readonly figures: readonly Figure[];
  readonly ratios: readonly Ratio[];
}

export const atLeast = (value: number): Goal => ({ direction: 'at least', value });
export const atMost = (value: number): Goal => ({ direction: 'at most', value });

/** Before the bench itself is a load. What waits for a processor that others use is not measured by its time. */
const [load = 0] = loadavg();
const isBusy = load > 1.5;

export function render(sections: readonly Section[]): string {
  return [goals(sections), ...sections.map(details)].join('\n');
}

function goals(sections: readonly Section[]): string {
  const rows = sections.flatMap(({ title, ratios }) =>
    ratios.flatMap(({ what, value, goal }) =>
      goal === undefined
        ? []
        : [
            `| ${title}: ${what} | ${number(value)} | ${goal.direction} ${number(goal.value)} | ${judge(value, goal)} |`,
          ],
    ),
  );
  return ['## Goals', '', '| what | measured | goal | |', '|---|---:|---:|---|', ...rows, ''].join('\n');
}

function judge(value: number, { direction, value: wanted }: Goal): string {
  const isReached = direction === 'at least' ? value >= wanted : value <= wanted;
  return `${isReached ? 'reached' : 'not reached'}${isBusy ? ', on a busy machine' : ''}`;
}

function details({ title, figures, ratios }: Section): string {
  const rows = figures.map(({ name, rates, cpuMicros }) => {
    const range = `${number(Math.min(...rates))}–${number(Math.max(...rates))}`;
    return `| ${name} | ${number(median(rates))} | ${range} | ${number(median(cpuMicros))} |`;
  });
  const head = ['| | per second | lowest–highest | CPU µs per call |', '|---|---:|---:|---:|'];
  return [
    `## ${title}`,
    '',
    ...(rows.length === 0 ? [] : [...head, ...rows, '']),
    ...ratios.map(
      ({ what, value, goal }) =>
        `- ${what}: **${number(value)}**${goal === undefined ? '' : ` (goal: ${goal.direction} ${number(goal.value)}, ${judge(value, goal)})`}`,
    ),
    '',
  ].join('\n');
}

export function writeEvidence(sections: readonly Section[], command: string, rounds: number): void {
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  const head = [
    '# Bench',
    '',
    `Written by \`${command}\` at commit ${commit} on ${new Date().toISOString().slice(0, 10)}: ${machine}.`,
    `Load average at the start: ${load.toFixed(1)}.`,
    `Limits, peers and semel in turn in one process, ${rounds} rounds; rates are medians, ratios medians of the ratios of the rounds.`,
    'CPU is that of the measuring process; a server works beside it on the same cores.',
    '',
  ];
  writeFileSync(
    new URL('../docs/internals/evidence/bench.md', import.meta.url),
    `${head.join('\n')}\n${render(sections)}`,
  );
}

function number(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value >= 1_000) return Math.round(value).toLocaleString('en-US');
  if (value >= 100) return value.toFixed(0);
  return value > 0 && value < 0.1 ? value.toPrecision(2) : String(Number(value.toFixed(2)));
}
