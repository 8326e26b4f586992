// Which writes go to the database as lists, and which as whole rows.
import { expect, test } from 'vitest';
import { claim } from '../../src/rules/claim.ts';
import type { Swap, Write } from '../../src/store/remote/backend.ts';
import type { Row } from '../../src/store/store.ts';
import { sortSwaps } from '../../src/stores/postgres/exchange.ts';
import { claimRequest, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';

const at = Date.UTC(2026, 5, 19);
const time = { wall: at, mono: at, boot: 'store', steady: true };
const running = claim(undefined, claimRequest(), time, 0).row as Row;
const ended: Row = { ...running, status: 'succeeded', settledAt: at, leaseBoot: null, leaseUntil: null };

function sent(row: Row, over: Partial<Write> = {}) {
  const before = { row: running, revision: 1 };
  const write: Write = { before, row, revision: 2, events: [], at, until: at + 2_000, beside: [], ...over };
  const swap: Swap = { namespace: theNamespace, key: theKey, write };
  return sortSwaps([swap]).writes[0]?.name;
}

test('an ordinary claim and an ordinary settlement are lists', () => {
  expect(sent(running, { before: undefined })).toBe('claim');
  expect(sent(ended)).toBe('settle');
});

test.each([
  'fence',
  'createdAt',
  'token',
  'version',
  'owner',
  'args',
  'content',
  'conversation',
  'turn',
  'toolCallId',
  'run',
  'again',
  'caller',
] as const)('a settlement that changes what the list leaves out is a whole row: %s', (field) => {
  const value = typeof running[field] === 'number' ? running[field] + 1 : 'other';
  expect(sent({ ...ended, [field]: value } as Row)).toBe('swap');
});

test('a decision that is about to change is not shared with other calls', () => {
  expect(sent(ended, { until: at + 500 })).toBe('swap');
  expect(sent(running, { before: undefined, until: at + 500 })).toBe('swap');
});

test('everybody writes in the order of the keys', () => {
  const swap = (key: string): Swap => ({
    namespace: theNamespace,
    key,
    write: {
      before: undefined,
      row: { ...running, key },
      revision: 2,
      events: [],
      at,
      until: at + 2_000,
      beside: [],
    },
  });
  const [write] = sortSwaps([swap('mail/b'), swap('mail/a')]).writes;
  expect(write?.values[1]).toEqual(['mail/a', 'mail/b']);
});
