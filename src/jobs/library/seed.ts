// What a run starts from, the same in all its attempts: choices that depend on job, slot, ids and name alone, stored on first use.
// `semel pick` and `semel seed` make the same ones.

import { SemelError } from '../../core/errors.ts';
import type { Semel } from '../../semel/index.ts';
import type { RunContext } from '../context.ts';
import { choose, pick, picksOf, seedOf, seedWords } from '../slots/pick.ts';
import { type RecentWork, recentWork } from '../slots/recent.ts';
import { weekdayOf } from '../slots/slot.ts';

export interface Seed {
  /** A random-looking whole number below 2^48, that of `semel seed`. */
  readonly number: number;
  /** One of these. `notRecent` avoids what the last slots chose. */
  pick<Item>(name: string, from: readonly Item[], options?: { readonly notRecent?: number }): Promise<Item>;
  /** All of these, in another order. */
  shuffle<Item>(name: string, items: readonly Item[]): Promise<Item[]>;
  /** `count` of these, in another order. */
  sample<Item>(name: string, items: readonly Item[], count: number): Promise<Item[]>;
  /** A whole number from `from` to `to`, both included. */
  int(name: string, from: number, to: number): Promise<number>;
  /** Date, weekday, zone, the run's choices, and what not to do again: recent work under these names. */
  toPrompt(options?: { readonly recent?: readonly string[]; readonly limit?: number }): Promise<string>;
}

export function createSeed(
  semel: Semel,
  run: RunContext,
  recent: (name: string, most: number) => Promise<readonly RecentWork[]>,
): Seed {
  const words = seedWords(run);
  const numberFor = (...more: readonly string[]) => seedOf(...words, ...more);
  const shuffled = <Item>(kind: 'shuffle' | 'sample', name: string, items: readonly Item[]): Item[] => {
    const left = [...items];
    for (let last = left.length - 1; last > 0; last -= 1) {
      const other = numberFor(kind, name, String(last)) % (last + 1);
      [left[last], left[other]] = [left[other] as Item, left[last] as Item];
    }
    return left;
  };
  return {
    number: numberFor('seed'),
    async pick(name, from, { notRecent = 0 } = {}) {
      checkList('pick', name, from);
      return pick(semel, run, name, from, notRecent);
    },
    async shuffle(name, items) {
      checkList('shuffle', name, items, 0);
      return choose(semel, run, `shuffle ${name}`, () => shuffled('shuffle', name, items));
    },
    async sample(name, items, count) {
      checkList('sample', name, items, count);
      return choose(semel, run, `sample ${name}`, () => shuffled('sample', name, items).slice(0, count));
    },
    async int(name, from, to) {
      if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || to < from || to - from >= 2 ** 32)
        throw new SemelError(
          'INVALID_ARGS',
          `seed.int(${JSON.stringify(name)}, …) needs a range of whole numbers.`,
          {
            path: 'from',
            next: "Write seed.int('hour', 9, 17); the range may have up to 2^32 numbers.",
          },
        );
      return choose(semel, run, `int ${name}`, () => from + (numberFor('int', name) % (to - from + 1)));
    },
    async toPrompt({ recent: names = [], limit = 10 } = {}) {
      const picks = Object.entries(await picksOf(semel, run));
      const lines = [
        `Job: ${run.id.job}`,
        `Slot: ${run.id.slot}`,
        `Date: ${run.date} (${weekdayOf(run.date)}), time zone ${run.zone}`,
        ...Object.entries(run.id.ids).map(([name, value]) => `${name}: ${value}`),
        ...picks.map(([name, choice]) => `Chosen ${name}: ${shown(choice)}`),
      ];
      for (const name of names) {
        const done = await recent(name, limit);
        lines.push(
          done.length === 0
            ? `Earlier ${name}: none`
            : `Do not repeat (earlier ${name}, newest first):\n${done.map(({ result, args }) => `- ${shown(result ?? args)}`).join('\n')}`,
        );
      }
      return lines.join('\n');
    },
  };
}

/** Recent work of earlier slots only. */
export function recentOf(semel: Semel, run: RunContext) {
  return (name: string, most = 10): Promise<readonly RecentWork[]> =>
    recentWork(semel, name, most, { run: run.text, startsAt: run.id.startsAt ?? run.at });
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function checkList(what: string, name: string, items: unknown, least = 1): void {
  if (Array.isArray(items) && items.length >= least && Number.isInteger(least) && least >= 0) return;
  const problem = Array.isArray(items) ? `a list of ${items.length}` : 'no list';
  throw new SemelError('INVALID_ARGS', `seed.${what}(${JSON.stringify(name)}, …) got ${problem}.`, {
    path: 'from',
    next: 'Pass a list with enough items to choose from.',
  });
}
