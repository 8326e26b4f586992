// One call of a model, dispatched by two workers in two turns, on each real store: its mark is claimed like any other key.
import { createSemel } from 'semel';
import { describe, expect, inject, test } from 'vitest';
import { startLedger, storeNames } from '../crash/storm/ledger.ts';
import { newScratch } from '../processes/scratch.ts';

describe.each(storeNames)('one call in many turns on %s', (store) => {
  test.skipIf(store === 'redis' && inject('redisUrl') === '')('lands once', async () => {
    using scratch = newScratch('first-turn');
    await using ledger = await startLedger(store, scratch.path('ledger.db'));
    const workers = Array.from({ length: 4 }, () =>
      createSemel({ store: ledger.address, namespace: 'turns', onWarning: () => undefined }),
    );
    const sent: string[] = [];
    const calls = Array.from(
      { length: 40 },
      (_, n) => `call_${n}x${crypto.randomUUID().replaceAll('-', '')}`,
    );
    const tools = workers.map((semel) =>
      semel.tool({
        name: 'mail',
        effect: 'write-non-idempotent',
        per: 'turn',
        run: ({ to }: { to: string }) => sent.push(to),
      }),
    );
    await Promise.all(
      calls.flatMap((toolCallId) =>
        tools.map((tool, turn) =>
          tool({ to: toolCallId }, { conversation: 'c', turn: `request ${turn}`, toolCallId }),
        ),
      ),
    );
    expect(sent.toSorted()).toEqual(calls.toSorted());
    await Promise.all(workers.map((semel) => semel.close()));
  });
});
