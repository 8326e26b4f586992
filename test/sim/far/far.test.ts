// The far store in bad weather, a little with every test run; `npm run chaos -- far` runs as many histories as wanted.
import { expect, test } from 'vitest';
import { outside } from '../scheduler.ts';
import { runFarHistories } from './histories.ts';

test('2,400 histories of the far store could all have happened at a store that does one thing at a time', async () => {
  const { violations, answers, unheard, folded, jumps } = await outside(() => runFarHistories(1, 2_400));
  expect(violations).toEqual([]);
  // What did not happen was not tested.
  expect(answers).toBeGreaterThan(20_000);
  expect(unheard).toBeGreaterThan(300);
  expect(folded).toBeGreaterThan(300);
  expect(jumps).toBeGreaterThan(500);
});
