// The table of docs/guides/queues.md is that of the code.

import { errorCodes } from 'semel';
import { expect, test } from 'vitest';
import { meanings } from '../../src/consumer/decision.ts';
import { readPage, rows } from '../docs/page.ts';

const firstWords: Record<(typeof meanings)[keyof typeof meanings], RegExp> = {
  done: /^\*\*ack\*\*$/,
  'not landed': /^\*\*retry\*\* after `backoff`.* \*\*dead letter\*\*$/,
  later: /^\*\*retry\*\*$/,
  undecided: /^\*\*retry\*\* until .* never an ack, never dead by counting$/,
  'not here': /^\*\*retry\*\* every `maxBackoff`, with a warning$/,
  never: /^\*\*dead letter\*\*, with the reason$/,
};

test('the table has every error code once, in the row that says what happens to its message', () => {
  const table = rows(readPage('docs/guides/queues.md'), 'What becomes of a message').slice(1);
  const found = table.flatMap(([, fate = '', codes = '']) =>
    codes.split(', ').map((code) => [code, fate] as const),
  );
  expect(found.map(([code]) => code).sort()).toEqual([...errorCodes].sort());
  for (const [code, fate] of found)
    expect(fate, code).toMatch(firstWords[meanings[code as keyof typeof meanings]]);
});
