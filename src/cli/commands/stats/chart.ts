// The counts for a terminal: a bar per slot, a table of contracts, and the totals.

import { formatDuration } from '../../../core/contract/duration.ts';
import type { Counts, Slot, Stats } from '../../../semel/index.ts';
import { relative, styled } from '../../render/print.ts';
import { type Cell, table } from '../../render/table.ts';
import { fileWidth, terminalWidth } from '../../render/wrap.ts';

const maxBarWidth = 40;
/** The text before a bar, and one character for each part that is rounded up. */
const numbersWidth = 50;

/** The totals in sentences. */
export function summary(stats: Stats, observe: boolean): readonly string[] {
  const span = formatDuration(stats.until.getTime() - stats.since.getTime());
  return observe ? [observed(stats, span)] : totalsOf(stats, span);
}

function totalsOf({ totals, doubts }: Stats, span: string): readonly string[] {
  const { executed, replayed, saved, conflicts, duplicates } = totals;
  const lines = [
    `In ${span}: ${executed} executed, ${replayed} replayed; ${effects(saved)} kept from landing twice.`,
    `${doubts.open} in doubt now${doubts.oldest ? `, the oldest from ${relative(doubts.oldest)}` : ''}; ${doubts.resolved} resolved by people, ${doubts.decided} decided by code.`,
  ];
  if (conflicts > 0)
    lines.push(
      `${many(conflicts, 'conflict')}: one key for two intents, or a call that another caller had made.`,
    );
  if (duplicates > 0)
    lines.push(styled('red', `${effects(duplicates)} landed twice, as far as was reported.`));
  if (totals.wouldPrevent + totals.wouldHold > 0) lines.push(`Observing: ${observed({ totals }, span)}`);
  return lines;
}

function observed({ totals }: Pick<Stats, 'totals'>, span: string): string {
  const { wouldPrevent, wouldHold } = totals;
  const held = wouldHold === 0 ? '' : `, and held back ${many(wouldHold, 'call')} in doubt or in conflict`;
  return `semel would have prevented ${many(wouldPrevent, 'duplicate')} in ${span}${held}.`;
}

function effects(count: number): string {
  return many(count, 'effect');
}

function many(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** A line per slot; slots without calls fold into one. */
export function chart({ slots, by }: Stats, observe: boolean, room = terminalWidth()): readonly string[] {
  const words = observe
    ? (['executed', 'wouldPrevent', 'wouldHold'] as const)
    : (['executed', 'replayed', 'inDoubt'] as const);
  const head = observe
    ? [by, 'executed', 'prevented', 'held', '']
    : [by, 'executed', 'replayed', 'in doubt', ''];
  const size = (slot: Slot) => words.reduce((sum, word) => sum + slot[word], 0);
  const most = Math.max(1, ...slots.map(size));
  const width = Math.min(maxBarWidth, Math.max(1, (room ?? fileWidth) - numbersWidth));
  const used = slots.filter((slot) => size(slot) > 0);
  const rows = used.map((slot) => {
    const counts = words.map((word) => slot[word]);
    return [slot.slot, ...counts.map(String), bar(counts, most, width)];
  });
  const [top = '', ...lines] = table(head, rows, room);
  const lineOf = new Map(used.map((slot, at) => [slot, lines[at] ?? '']));
  const shown: string[] = used.length === 0 ? [] : [top];
  let empty = 0;
  for (const slot of [...slots, undefined]) {
    const line = slot && lineOf.get(slot);
    if (slot !== undefined && line === undefined) empty += 1;
    else {
      if (empty > 0) shown.push(styled('dim', `${empty} ${by}${empty === 1 ? '' : 's'} without calls`));
      if (line !== undefined) shown.push(line);
      empty = 0;
    }
  }
  return shown;
}

/** Anything above zero gets at least one character. */
export function bar(parts: readonly number[], most: number, width = maxBarWidth): string {
  const signs = ['█', '░', '?'];
  return parts
    .map((count, n) =>
      (signs[n] as string).repeat(count === 0 ? 0 : Math.max(1, Math.round((count / most) * width))),
    )
    .join('');
}

export function contracts({ contracts: rows, totals }: Stats, observe: boolean): readonly string[] {
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
  const row = (contract: string, namespace: string, counts: Counts) => [
    contract,
    ...(isOneNamespace ? [] : [namespace]),
    ...words.map(([, word]) => cell(counts, word)),
  ];
  return table(
    [
      { name: 'contract', min: 12, keep: 'end' },
      ...(isOneNamespace ? [] : [{ name: 'namespace', min: 9 }]),
      ...words.map(([name]) => name),
    ],
    [...rows.map((counts) => row(counts.contract, counts.namespace, counts)), row('all', '', totals)],
  );
}
