import { expect, test } from 'vitest';
import { gate, rest, rig } from '../../../test/library/support.ts';
import { guardOf } from '../../guard/index.ts';
import type { Changes } from './changes.ts';
import { isUnfinished } from './outcome.ts';
import { createQuestions } from './questions.ts';
import { toolGuard } from './tool-calls.ts';

test.each([
  ['its time is over', 11 * 60_000, 'advance'],
  ['its process stood still and another has taken it over', 11 * 60_000, 'jump'],
] as const)('nothing is sent while the ledger is slow and %s', async (_name, ms, pass) => {
  const made = rig();
  const written = gate();
  const changes = {
    begin: async () => {
      await written.promise;
      return async () => undefined;
    },
  } as unknown as Changes;
  const policy = { effect: 'write-non-idempotent', per: 'ever' } as const;
  const guard = guardOf(made.semel, 'shop.act', policy, { passes: isUnfinished });
  const { answer } = toolGuard(made.semel, guard as never, {
    errors: 'in-doubt',
    changes,
    questions: createQuestions(),
  });
  const sent: unknown[] = [];
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'act', arguments: { n: 1 } } };
  const reply = answer(call as never, { scope: 'me', identity: {} }, async (key) => {
    sent.push(key);
    return { jsonrpc: '2.0', id: 1, result: { content: [] } };
  });
  await rest();
  await made.clock[pass](ms);
  if (pass === 'jump') {
    const [record] = (await made.semel.records.list()).items;
    await made.another().doubts.resolve(record!.ref, 'notLanded', { by: 'ann', force: true });
  }
  written.resolve();
  await made.clock.until(reply);
  await rest();
  expect(sent).toEqual([]);
  expect((await made.semel.records.list()).items).toMatchObject([{ status: 'released', doubt: false }]);
});
