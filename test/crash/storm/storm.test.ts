// The short storm of CI. `npm run chaos -- kill` has the long one.
import { expect, test } from 'vitest';
import { formatViolation, shortfalls } from '../../../src/testing/checker/index.ts';
import { minimumOf } from './minimum.ts';
import { storm } from './storm.ts';

test('a short storm of kills and stops: nothing is doubled, nothing is lost', async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const report = await storm({ seed, workers: 8, kills: 25, stops: 8, maxMs: 100_000, faultEveryMs: 120 });
  const { logs: _logs, violations, notOnce, ...counts } = report;
  console.log(JSON.stringify({ seed, ...counts }));
  expect(violations.map(formatViolation).join('\n\n')).toBe('');
  expect(notOnce).toEqual([]);
  // A storm in which nothing happened proves nothing.
  expect(shortfalls(report.effort, minimumOf(25))).toEqual([]);
}, 180_000);
