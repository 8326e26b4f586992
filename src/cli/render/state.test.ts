// The one name of a record in lists: what a person recognises it by.

import { describe, expect, test } from 'vitest';
import type { RecordInfo } from '../../semel/index.ts';
import { isStep, nameOf } from './state.ts';

const record = (given: Partial<RecordInfo>) =>
  ({ contract: 'mail', key: 'mail/-/abc', ...given }) as RecordInfo;

describe('nameOf', () => {
  test.each<[string, Partial<RecordInfo>, string]>([
    ['a tool', {}, 'mail'],
    ['a run', { contract: 'run.report', args: { slot: '2026-11-18' } }, 'run.report 2026-11-18'],
    ['an effect of a run', { run: 'report@2026-11-18~mwbam3k0' }, 'mail report@2026-11-18'],
    ["a run of another engine's", { run: 'wf-7f3a' }, 'mail'],
    ["the caller's own key", { key: 'mail/=2026-11%2Fpay-1' }, 'mail 2026-11/pay-1'],
    ['an Idempotency-Key', { key: 'mail/=k1%20zx9by7s6s6bjp2x5yj0kdbp62x6ef6b7' }, 'mail k1'],
  ])('%s', (_, given, name) => {
    expect(nameOf(record(given))).toBe(name);
  });
});

test("a step is one of semel's own, not a tool of the user's that is named like one", () => {
  const step = { contract: 'step.count', args: { step: 'count' }, run: 'report@2026-11-18~mwbam3k0' };
  expect(isStep(record(step))).toBe(true);
  expect(isStep(record({ ...step, args: { order: 7 } }))).toBe(false);
  expect(isStep(record({ contract: 'step.count', args: { step: 'count' } }))).toBe(false);
});
