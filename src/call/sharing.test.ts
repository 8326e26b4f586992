// Who shares a flight. One semel has one namespace; a server has many in one process.
import { expect, test } from 'vitest';
import { systemClock, systemRandom } from '../core/clock.ts';
import { defineContract } from '../core/contract/contract.ts';
import { createLedger } from '../ledger/index.ts';
import { memoryStore } from '../store/memory.ts';
import { lifeOf } from '../store/process-life.ts';
import { Call, createPipeline, type Result, unstoredMaker } from './index.ts';

const contract = defineContract(
  { name: 'mail.send', effect: 'write-non-idempotent', per: 'ever' },
  { hasVerify: false, hasPrepare: false },
);

function callIn(namespace: string, run: () => unknown): Call {
  const parts = {
    tool: { contract, run },
    namespace,
    args: {},
    key: 'mail.send/=order-17',
    fingerprint: 'the same',
    intent: '{}',
    periodEndsAt: null,
    identity: {},
    again: null,
    notAfter: null,
    signal: undefined,
  };
  return new Call(parts, { ...unstoredMaker, storedArgs: () => '{}' });
}

function oneRunner() {
  const [clock, random] = [systemClock, systemRandom];
  const cache = { maxBytes: 100_000, maxAgeMs: 5_000 };
  const ledger = createLedger({ store: memoryStore(), clock, random, cache });
  const limits = { maxResultBytes: 1_000, mayRunUnguarded: false };
  return createPipeline({
    ledger,
    clock,
    random,
    ...lifeOf('test', () => false),
    ...limits,
    warn: () => undefined,
  });
}

const given = (result: Result) => (result.ok ? result.value : result.error.code);

test('two namespaces that make the same call at once each get their own value; one namespace shares it', async () => {
  const { run } = oneRunner();
  const [first, again, other] = await Promise.all([
    run(callIn('a', async () => 'of a')),
    run(callIn('a', async () => 'of a, once more')),
    run(callIn('b', async () => 'of b')),
  ]);
  expect([first, again, other].map(given)).toEqual(['of a', 'of a', 'of b']);
});

test('what one namespace has in memory is not replayed to another', async () => {
  const { run } = oneRunner();
  await run(callIn('a', () => 'of a'));
  expect(given(await run(callIn('b', () => 'of b')))).toBe('of b');
  expect(given(await run(callIn('a', () => 'of a, once more')))).toBe('of a');
});
