import { expect, test } from 'vitest';
import { defineContract } from '../core/contract/contract.ts';
import { createHabit } from './habit.ts';

const contractOf = (name: string) =>
  defineContract(
    { name, effect: 'write-non-idempotent', per: 'ever' },
    { hasVerify: false, hasPrepare: false },
  );

test('the first call of a process looks first: it may be a repeated one', () => {
  expect(createHabit().peeksFirst(contractOf('mail'))).toBe(true);
});

test('a tool with mostly new calls claims at once, from its second call on', () => {
  const habit = createHabit();
  const mail = contractOf('mail');
  habit.learn(mail, false);
  expect(habit.peeksFirst(mail)).toBe(false);
  expect(habit.peeksFirst(contractOf('another'))).toBe(true);
});

test('a habit changes after a few calls of the other kind, however long it has lasted', () => {
  const habit = createHabit();
  const mail = contractOf('mail');
  for (let calls = 0; calls < 1_000; calls += 1) habit.learn(mail, false);
  for (let calls = 0; calls < 9; calls += 1) habit.learn(mail, true);
  expect(habit.peeksFirst(mail)).toBe(true);
});
