// The short storm of CI. `npm run chaos -- kill` has the long one.
import { expect, test } from 'vitest';
import { formatViolation, shortfalls } from '../../../src/testing/checker/index.ts';
import { minimumOf } from './minimum.ts';
import { storm } from './storm.ts';

test('a short storm of kills and stops: nothing is doubled, nothing is lost', async () => {
  let missing: string[] = [];
  // A storm in which too little happened proves nothing. Chance decides, so it is made again; a violation never is.
  for (let round = 1; round <= 3; round += 1) {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const report = await storm({ seed, workers: 8, kills: 25, stops: 8, maxMs: 60_000, faultEveryMs: 120 });
    const { logs: _logs, violations, notOnce, ...counts } = report;
    console.log(JSON.stringify({ seed, ...counts }));
    expect(violations.map(formatViolation).join('\n\n')).toBe('');
    expect(notOnce).toEqual([]);
    missing = shortfalls(report.effort, minimumOf(25));
    if (missing.length === 0) return;
  }
  expect(missing).toEqual([]);
}, 240_000);
