// Which writes go to the database as lists, and which as whole rows.
import { expect, test } from 'vitest';
import { claim } from '../../src/rules/claim.ts';
import type { Swap, Write } from '../../src/store/remote/backend.ts';
import type { Row } from '../../src/store/store.ts';
import { valuesOf } from '../../src/stores/postgres/exchange.ts';
import { exchangeParameters } from '../../src/stores/postgres/exchange-function.ts';
import { claimRequest, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';

const at = Date.UTC(2026, 5, 19);
const time = { wall: at, mono: at, boot: 'store', steady: true };
const running = claim(undefined, claimRequest(), time, 0).row as Row;
const ended: Row = { ...running, status: 'succeeded', settledAt: at, leaseBoot: null, leaseUntil: null };

function sent(row: Row, over: Partial<Write> = {}): Readonly<Record<string, unknown>> {
  const before = { row: running, revision: 1 };
  const write: Write = { before, row, revision: 2, events: [], at, until: at + 2_000, beside: [], ...over };
  const swap: Swap = { namespace: theNamespace, key: theKey, write };
  const values = valuesOf([swap]);
  return Object.fromEntries(exchangeParameters.map(([name], index) => [name, values[index]]));
}

test('an ordinary claim and an ordinary settlement are lists', () => {
  expect(sent(running, { before: undefined })).toMatchObject({ claim_key: `{"${theKey}"}`, rest: null });
  expect(sent(ended)).toMatchObject({ claim_key: null, settle_key: `{"${theKey}"}`, rest: null });
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
  const { settle_key, rest } = sent({ ...ended, [field]: value } as Row);
  expect(settle_key).toBeNull();
  expect(rest).toContain(theKey);
});

test('a decision that is about to turn does not stand for others', () => {
  expect(sent(ended, { until: at + 500 })).toMatchObject({ settle_key: null });
  expect(sent(running, { before: undefined, until: at + 500 })).toMatchObject({ claim_key: null });
});

test('a kind is not divided between lists and rows', () => {
  const swap = (key: string, until: number): Swap => ({
    namespace: theNamespace,
    key,
    write: { before: undefined, row: { ...running, key }, revision: 2, events: [], at, until, beside: [] },
  });
  const values = valuesOf([swap('mail/b', at + 2_000), swap('mail/a', at + 500)]);
  const rest = values[exchangeParameters.findIndex(([name]) => name === 'rest')];
  expect(values[0]).toBeNull();
  expect(JSON.parse(rest as string).map(({ key }: { key: string }) => key)).toEqual(['mail/a', 'mail/b']);
});
