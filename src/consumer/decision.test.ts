// The table, over every error code: nothing that may have landed is acknowledged or becomes a dead letter.

import { describe, expect, test } from 'vitest';
import { emptyReceipt } from '../call/index.ts';
import { type ErrorCode, type ErrorDetails, errorCodes, SemelError } from '../core/errors.ts';
import type { Receipt } from '../core/receipt.ts';
import { decide } from './decision.ts';

const terms = { maxTries: 3, backoffMs: 1_000, maxBackoffMs: 60_000 };

function decideFor(code: ErrorCode, more: ErrorDetails & Partial<Receipt> = {}, deliveries?: number) {
  const receipt = { ...emptyReceipt('refund'), attempt: 1, ...more };
  const error = new SemelError(code, 'It happened.', more);
  return decide({ ok: false, error, receipt }, terms, deliveries, 1);
}

/** Written down once more, by hand: a code that changes its place has to do so twice. */
const expected: Record<ErrorCode, 'ack' | 'retry' | 'dead letter'> = {
  RESULT_OMITTED: 'ack',
  NOT_LANDED: 'retry',
  IN_FLIGHT: 'retry',
  LEASE_LOST: 'retry',
  ABORTED: 'retry',
  STORE_UNAVAILABLE: 'retry',
  IN_DOUBT: 'retry',
  PARTIAL_SUCCESS: 'retry',
  UNRECORDED: 'retry',
  NOT_PERMITTED: 'retry',
  VERSION_MISMATCH: 'retry',
  NO_IDENTITY: 'retry',
  CONTRACT_INVALID: 'retry',
  REENTRANT: 'retry',
  STEP_CHANGED: 'retry',
  RESOLVE_STALE: 'retry',
  STORE_UNSAFE: 'retry',
  STORE_MOVED: 'retry',
  INVALID_ARGS: 'dead letter',
  NOT_CANONICAL: 'dead letter',
  KEY_CONFLICT: 'dead letter',
  FAILED: 'dead letter',
  POISON: 'dead letter',
  EXPIRED: 'dead letter',
};

describe.each(errorCodes)('%s', (code) => {
  test('has its place', () => {
    expect(decideFor(code).is).toBe(expected[code]);
  });

  test('is a dead letter by counting only if it definitely did not land', () => {
    const decision = decideFor(code, { attempt: 1_000 }, 1_000);
    expect(decision.is).toBe(code === 'NOT_LANDED' ? 'dead letter' : expected[code]);
  });

  test('goes back with a delay', () => {
    const decision = decideFor(code);
    if (decision.is === 'retry') expect(decision.afterMs).toBeGreaterThanOrEqual(1_000);
    if (decision.is !== 'ack') expect(decision.reason).toContain('It happened.');
  });
});

test('a value is acknowledged, and handed on', () => {
  const receipt = emptyReceipt('refund');
  expect(decide({ ok: true, value: 7, receipt }, terms, 1, 0)).toEqual({ is: 'ack', value: 7, receipt });
});

test('a call that was skipped is not acknowledged', () => {
  const receipt = { ...emptyReceipt('refund'), skipped: true };
  expect(decide({ ok: true, value: undefined, receipt }, terms, 1, 0).is).toBe('retry');
});

describe('a message that definitely did not land', () => {
  test('is retried with a growing delay, and is a dead letter after the last try, with the reason', () => {
    const decisions = [1, 2, 3].map((attempt) => decideFor('NOT_LANDED', { attempt }, attempt));
    expect(decisions).toMatchObject([
      { is: 'retry', afterMs: 1_000 },
      { is: 'retry', afterMs: 2_000 },
      { is: 'dead letter', reason: 'It happened. It was tried 3 times.' },
    ]);
  });

  test('does not count deliveries at which it was not tried', () => {
    expect(decideFor('NOT_LANDED', { attempt: 2 }, 50).is).toBe('retry');
  });

  test('does not count the tries of an earlier message with the same intent', () => {
    expect(decideFor('NOT_LANDED', { attempt: 50 }, 1).is).toBe('retry');
  });

  test('waits as long as the target asks for', () => {
    expect(decideFor('NOT_LANDED', { retryAfterMs: 90_000 })).toMatchObject({ afterMs: 90_000 });
  });
});

describe('what may have landed', () => {
  test('is looked at rarely while only a person can decide', () => {
    expect(decideFor('IN_DOUBT')).toMatchObject({ is: 'retry', afterMs: 60_000 });
  });

  test('is looked at again when `verify` can decide', () => {
    const verified = { retriable: true, retryAfterMs: 30_000 };
    expect(decideFor('IN_DOUBT', verified)).toMatchObject({ is: 'retry', afterMs: 30_000 });
  });
});

test('an effect that is harmless to repeat has as many tries as any other, by the count of the queue', () => {
  const harmless = { retriable: true };
  expect([1, 2, 3].map((deliveries) => decideFor('FAILED', harmless, deliveries).is)).toEqual([
    'retry',
    'retry',
    'dead letter',
  ]);
  expect(decideFor('FAILED', { ...harmless, attempt: 1_000 }).is).toBe('retry');
});
