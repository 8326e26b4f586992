// Names that people choose, as contracts.

import { expect, test } from 'vitest';
import { contractName } from './run-id.ts';

test('two names never share a contract, even if one is spelt like the other’s changed form', () => {
  const changed = contractName(undefined, 'pay bob');
  const names = ['pay bob', 'pay-bob', 'pay/bob', 'pay..bob', changed, contractName(undefined, changed)];
  expect(new Set(names.map((name) => contractName(undefined, name))).size).toBe(names.length);
  expect(contractName('run', 'pay-bob')).toBe('run.pay-bob');
});

test('a long name is read in linear time, wherever its dashes are', () => {
  const long = `a${'-'.repeat(1_000_000)}b`;
  expect(contractName(undefined, long)).toMatch(/^a-{39}\.\.\w+$/);
  expect(contractName(undefined, `${long}${'-'.repeat(1_000_000)}`)).toMatch(/^a-{39}\.\.\w+$/);
  expect(contractName(undefined, 'pay bob --')).toMatch(/^pay-bob\.\.\w+$/);
});
