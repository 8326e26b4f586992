import { expect, test } from 'vitest';
import { createQuestions, type Held } from './questions.ts';

const held = {
  record: { ref: 'r1', updatedAt: new Date(0), value: {} },
  hasFailed: false,
  changedBy: 'edit_file',
} as unknown as Held;

test('a call that came before the question was delivered is not its answer', () => {
  const questions = createQuestions();
  const reply = questions.ask(1, 'me', held);
  const twinArrivedAt = questions.now();
  questions.delivered(reply);
  expect(questions.takeAnswer('me', held, twinArrivedAt)).toBe(false);
  expect(questions.takeAnswer('me', held, questions.now())).toBe(true);
});
