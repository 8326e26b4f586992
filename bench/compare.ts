// First executions and replays of several candidates on one store, by one caller and by many: the limit by hand, what
// others use, semel.

import { deepStrictEqual } from 'node:assert';
import { type Args, alone, callers, crowd, fill, next, result } from './calls.ts';
import { type Contestant, type Figure, measure } from './measure.ts';

export interface Candidate {
  readonly name: string;
  /** A call that is new, and one that was made before. */
  readonly first: (args: Args, caller: number) => Promise<unknown> | unknown;
  readonly again: (args: Args) => Promise<unknown> | unknown;
  /** How it does the work of many at once, where that is not by many calls. */
  readonly together?: () => Promise<number> | number;
}

export const one = 'one caller';
export const many: string = `${callers} callers`;

export interface Compared {
  readonly first: readonly Figure[];
  readonly replay: readonly Figure[];
}

export async function compare(rounds: number, candidates: readonly Candidate[]): Promise<Compared> {
  const known = Array.from({ length: 1_000 }, next);
  const nth = (n: number) => known[n % known.length] as Args;
  for (const { name, first, again } of candidates) {
    await fill(known.length, async (n) => first(nth(n), 0));
    deepStrictEqual(await again(nth(0)), result, `${name} replays something else`);
  }
  const contestants = (
    by: string,
    run: (candidate: Candidate) => Promise<number> | number,
  ): readonly Contestant[] =>
    candidates.map((candidate) => ({ name: `${candidate.name}: ${by}`, run: () => run(candidate) }));
  return {
    first: await measure(rounds, [
      ...contestants(one, ({ first }) => alone(() => first(next(), 0))),
      ...contestants(
        many,
        ({ first, together }) => together?.() ?? crowd(async (caller) => first(next(), caller)),
      ),
    ]),
    replay: await measure(rounds, [
      ...contestants(one, ({ again }) => alone((n) => again(nth(n)))),
      ...contestants(many, ({ again }) => crowd(async (caller, n) => again(nth(caller + n * callers)))),
    ]),
  };
}
