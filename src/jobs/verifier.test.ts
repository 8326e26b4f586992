// What the exit code of a verifier means.

import { describe, expect, test } from 'vitest';
import { askVerifier } from './verifier.ts';

const ask = (command: string, withinMs?: number, signal = new AbortController().signal) =>
  askVerifier(command, {}, signal, withinMs);

test('0 means landed, 1 not landed, anything else unknown', async () => {
  expect(await ask('echo there')).toMatchObject({ verdict: 'landed', value: { stdout: 'there\n' } });
  expect(await ask('exit 1')).toMatchObject({ verdict: 'notLanded' });
  expect(await ask('exit 2')).toMatchObject({ verdict: 'unsure' });
  expect(await ask('no-such-command')).toMatchObject({ verdict: 'unsure' });
  expect(await ask('kill -9 $$')).toMatchObject({ verdict: 'unsure' });
});

describe.each([0, 1])('a verifier that ends with %i because it was stopped', (code) => {
  // As programs do that clean up on TERM.
  const slow = `trap 'exit ${code}' TERM; sleep 30 & wait`;

  test('at its timeout has not answered', async () => {
    expect(await ask(slow, 300)).toMatchObject({ verdict: 'unsure' });
  });

  test('when the claim is lost has not answered', async () => {
    expect(await ask(slow, undefined, AbortSignal.timeout(300))).toMatchObject({ verdict: 'unsure' });
  });
});
