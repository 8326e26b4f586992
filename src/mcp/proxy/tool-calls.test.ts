import { expect, test } from 'vitest';
import { gate, rest, rig } from '../../../test/library/support.ts';
import { createGuard, type Guard } from '../../guard/index.ts';
import type { Semel } from '../../semel/index.ts';
import { isUnfinished } from './outcome.ts';
import { createRunAgain } from './run-again.ts';
import { createToolGuard } from './tool-calls.ts';

test.each([
  ['its time is over', 11 * 60_000, 'advance'],
  ['its process stood still and another has taken it over', 11 * 60_000, 'jump'],
] as const)('nothing is sent while the ledger is slow and %s', async (_name, ms, pass) => {
  const made = rig();
  const written = gate();
  const policy = { effect: 'write-non-idempotent', per: 'ever' } as const;
  const guard = createGuard(made.semel, 'shop.act', policy, { isControlFlow: isUnfinished }) as Guard;
  const slow: Guard = {
    ...guard,
    call: (asked, execute) =>
      guard.call(asked, async (args, ctx) => {
        await written.promise;
        return execute(args, ctx);
      }),
  };
  const runAgain = createRunAgain(made.semel);
  const { answer } = createToolGuard(made.semel, slow, { errors: 'in-doubt', runAgain });
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

test('a call that waits for another process gets its answer; a later one is asked', async () => {
  const made = rig();
  const other = made.another();
  const policy = { effect: 'write-non-idempotent' } as const;
  const running = gate();
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'act', arguments: { n: 1 } } };
  let sent = 0;
  const parseReply = (semel: Semel) => {
    const guard = createGuard(semel, 'shop.act', policy, { isControlFlow: isUnfinished }) as Guard;
    const { answer } = createToolGuard(semel, guard, { errors: 'ask', runAgain: createRunAgain(semel) });
    return () =>
      answer(call as never, { scope: 'me', identity: {} }, async () => {
        sent += 1;
        await running.promise;
        return { jsonrpc: '2.0', id: 1, result: { content: [] } };
      });
  };
  const [one, two] = [parseReply(made.semel), parseReply(other)];
  const first = one();
  await rest();
  const beside = two();
  await rest();
  running.resolve();
  expect(await made.clock.until(first)).not.toHaveProperty('result.isError');
  expect(await made.clock.until(beside)).toMatchObject({ result: { _meta: { 'dev.semel/replayed': true } } });
  for (const late of [one, two])
    expect(await made.clock.until(late())).toMatchObject({ result: { isError: true } });
  expect(sent).toBe(1);
});
