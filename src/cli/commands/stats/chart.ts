// The counts for a terminal: a bar per slot, a table of contracts, and the totals.

import { formatDuration } from '../../../core/contract/duration.ts';
import { fold } from '../../render/fold.ts';
import { type Cell, relative, styled, table } from '../../render/print.ts';
import type { ContractCounts, Counts, Slot, Stats } from './tally.ts';

/** Fits into 80 columns beside the counts. */
const barWidth = 36;

export function page(stats: Stats, observe: boolean): readonly string[] {
  const span = formatDuration(stats.until.getTime() - stats.since.getTime());
  return [
    ...(observe ? [observed(stats, span)] : summary(stats, span)).flatMap((line) => fold(line)),
    '',
    ...chart(stats, observe),
    '',
    ...contracts(stats, observe),
  ];
}

function summary({ totals, doubts }: Stats, span: string): readonly string[] {
  const { executed, replayed, saved, conflicts, duplicates } = totals;
  const lines = [
    `In ${span}: ${executed} executed, ${replayed} replayed; ${effects(saved)} saved from landing again.`,
    `${doubts.open} in doubt now${doubts.oldest ? `, the oldest from ${relative(doubts.oldest)}` : ''}; ${doubts.resolved} resolved by people, ${doubts.decided} decided by code.`,
  ];
  if (conflicts > 0)
    lines.push(`${conflicts} conflicts: one key for two intents, or a call that another caller had made.`);
  if (duplicates > 0)
    lines.push(styled('red', `${effects(duplicates)} landed twice, as far as was reported.`));
  if (totals.wouldPrevent + totals.wouldHold > 0) lines.push(`Observing: ${observed({ totals }, span)}`);
  return lines;
}

function observed({ totals }: Pick<Stats, 'totals'>, span: string): string {
  const { wouldPrevent, wouldHold } = totals;
  const held = wouldHold === 0 ? '' : `, and held back ${wouldHold} calls in doubt or in conflict`;
  return `semel would have prevented ${wouldPrevent} ${wouldPrevent === 1 ? 'duplicate' : 'duplicates'} in ${span}${held}.`;
}

function effects(count: number): string {
  return count === 1 ? '1 effect' : `${count} effects`;
}

function chart({ slots, by }: Stats, observe: boolean): readonly string[] {
  const words = observe
    ? (['executed', 'wouldPrevent', 'wouldHold'] as const)
    : (['executed', 'replayed', 'inDoubt'] as const);
  const head = observe
    ? [by, 'executed', 'prevented', 'held', '']
    : [by, 'executed', 'replayed', 'in doubt', ''];
  const size = (slot: Slot) => words.reduce((sum, word) => sum + slot[word], 0);
  const most = Math.max(1, ...slots.map(size));
  const rowOf = (slot: Slot) => [
    slot.slot,
    ...words.map((word) => String(slot[word])),
    bar(
      words.map((word) => slot[word]),
      most,
    ),
  ];
  const rows = runsOf(slots, (slot) => size(slot) === 0).flatMap((run) =>
    run.length > 1 ? [[`(${run.length} empty)`]] : run.map(rowOf),
  );
  return table(head, rows);
}

/** Neighbours that all match are one run; every other item is a run of its own. */
function runsOf<Item>(items: readonly Item[], matches: (item: Item) => boolean): readonly Item[][] {
  const runs: Item[][] = [];
  for (const item of items) {
    const last = runs.at(-1);
    if (last?.every(matches) && matches(item)) last.push(item);
    else runs.push([item]);
  }
  return runs;
}

/** Anything above zero gets at least one character. */
export function bar(parts: readonly number[], most: number): string {
  const signs = ['█', '░', '?'];
  return parts
    .map((count, n) =>
      (signs[n] as string).repeat(count === 0 ? 0 : Math.max(1, Math.round((count / most) * barWidth))),
    )
    .join('');
}

function contracts({ contracts: rows, totals }: Stats, observe: boolean): readonly string[] {
  const words: readonly (readonly [string, keyof Counts])[] = observe
    ? [
        ['executed', 'executed'],
        ['prevented', 'wouldPrevent'],
        ['held', 'wouldHold'],
      ]
    : [
        ['executed', 'executed'],
        ['replayed', 'replayed'],
        ['saved', 'saved'],
        ['in doubt', 'inDoubt'],
        ['conflicts', 'conflicts'],
      ];
  const cell = (counts: Counts, word: keyof Counts): string | Cell =>
    word === 'inDoubt' && counts[word] > 0
      ? { text: String(counts[word]), style: 'yellow' }
      : String(counts[word]);
  const isOneNamespace = new Set(rows.map(({ namespace }) => namespace)).size <= 1;
  const nameOf = ({ namespace, contract }: ContractCounts) =>
    isOneNamespace ? contract : `${contract}  (${namespace})`;
  const row = (name: string, counts: Counts) => [name, ...words.map(([, word]) => cell(counts, word))];
  return table(
    ['contract', ...words.map(([name]) => name)],
    [...rows.map((counts) => row(nameOf(counts), counts)), row('all', totals)],
  );
}
