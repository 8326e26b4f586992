// Effects that take from 1 to 20 ms, so that callers are never in step: what a store takes away from the rate without one.

import { type Bench, crowd, next, pause, staggered } from './calls.ts';
import { many } from './compare.ts';
import { measure, ratio } from './measure.ts';
import { atLeast, type Section } from './report.ts';

/** `bench` has the effects; `byHand` is what the database does without semel. */
export async function effects(
  store: string,
  rounds: number,
  bench: Bench,
  byHand: (caller: number) => Promise<unknown> | unknown,
): Promise<Section> {
  const figures = await measure(rounds, [
    { name: 'no store', run: () => crowd(() => pause(staggered())) },
    {
      name: 'by hand, one at a time',
      run: () => crowd((caller) => pause(staggered()).then(() => byHand(caller))),
    },
    { name: 'semel', run: () => crowd((caller) => bench.send(next(), caller)) },
  ]);
  await bench.close();
  return {
    title: `${store}, effects of 1 to 20 ms, ${many}`,
    figures,
    ratios: [
      { what: 'semel / no store', value: ratio(figures, 'semel', 'no store'), goal: atLeast(0.85) },
      { what: 'by hand / no store', value: ratio(figures, 'by hand, one at a time', 'no store') },
    ],
  };
}
