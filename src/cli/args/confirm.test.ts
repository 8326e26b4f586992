import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { confirm } from './confirm.ts';

function terminal(isTTY = true) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = Object.assign(new PassThrough(), { isTTY });
  return { command: 'forget', yes: undefined, input, output };
}

describe('a person is asked', () => {
  test.each([
    ['y\n', true],
    ['YES\n', true],
    ['n\n', false],
    ['\n', false],
    ['yesterday\n', false],
  ])('and %j means %j', async (answer, expected) => {
    const asking = terminal();
    const answered = confirm('Forget?', asking);
    asking.input.write(answer);
    expect(await answered).toBe(expected);
    expect(String(asking.output.read())).toContain('Forget? [y/N]');
  });

  test('and the end of the input is a no', async () => {
    const asking = terminal();
    const answered = confirm('Forget?', asking);
    asking.input.end();
    expect(await answered).toBe(false);
  });
});

test('with --yes it does not ask', async () => {
  expect(await confirm('Forget?', { ...terminal(false), yes: true })).toBe(true);
});

test('without a terminal it cannot ask, and assumes nothing', async () => {
  await expect(confirm('Forget?', terminal(false))).rejects.toThrow('--yes');
});
