// Decisions over HTTP: what they change, and where a person finds who took them.

import { expect, onTestFinished, test } from 'vitest';
import { type AdminAct, digestToken, startServer } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory.ts';

const secret = (name: string) => `token-of-${name}-which-is-long-enough-to-be-one`;

async function open() {
  const acts: AdminAct[] = [];
  const store = memoryStore();
  const server = await startServer({
    store,
    policies: { version: 1, tools: { refund: { effect: 'irreversible', per: 'ever' } } },
    tokens: [
      { name: 'ann', role: 'admin', namespace: 'shop', sha256: digestToken(secret('ann')) },
      { name: 'worker', role: 'execute', namespace: 'shop', sha256: digestToken(secret('worker')) },
    ],
    listen: { host: '127.0.0.1', port: 0 },
    onWarning: () => undefined,
    onAct: (act) => acts.push(act),
  });
  onTestFinished(() => server.close(0));
  const send = async (path: string, as: string, body?: object) => {
    const answer = await fetch(`${server.url}${path}`, {
      headers: { authorization: `Bearer ${secret(as)}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has its own.
    return { status: answer.status, body: (await answer.json()) as any };
  };
  const begin = async () => (await send('/v1/begin', 'worker', { tool: 'refund', args: 'p1' })).body;
  /** Ends the call so, and answers its ref. */
  const end = async (outcome: string) => {
    const { attempt, recordId, fence } = await begin();
    await send('/v1/settle', 'worker', {
      attempt,
      outcome,
      ...(outcome === 'failed' ? {} : { value: 're_1' }),
    });
    return `${recordId}@${fence}`;
  };
  const actsIn = async (ref: string) => {
    const { history } = (await send(`/v1/record?ref=${ref}`, 'ann')).body;
    return history
      .filter(({ type }: { readonly type: string }) => type === 'resolved')
      .map(({ detail }: { readonly detail: object }) => detail);
  };
  return { acts, store, send, begin, end, actsIn };
}

test('a success that is forgotten is executed again, and the history names the token', async () => {
  const { acts, store, send, begin, end, actsIn } = await open();
  const ref = await end('succeeded');
  expect((await begin()).outcome).toBe('replay');
  expect((await send('/v1/forget', 'worker', { ref })).status).toBe(403);
  const forgotten = await send('/v1/forget', 'ann', { ref, note: 'the bank took it back' });
  expect(forgotten).toMatchObject({ status: 200, body: { record: { status: 'succeeded', expired: true } } });
  const said = { act: 'forget', by: 'ann', note: 'the bank took it back' };
  expect(await actsIn(ref)).toMatchObject([said]);
  expect(acts).toEqual([
    { act: 'forget', namespace: 'shop', tool: 'refund', record: ref.split('@')[0], by: 'ann' },
  ]);
  expect((await begin()).outcome).toBe('execute');
  // The next execution is a record of its own time, with the same history.
  expect(await actsIn(ref)).toMatchObject([said]);
  // Stale: it is another attempt now.
  expect((await send('/v1/forget', 'ann', { ref })).status).toBe(409);
  expect(acts).toHaveLength(1);
  await store.close();
});

test('who forgot a record is known although the record was removed', async () => {
  const { acts, store, send, end } = await open();
  const ref = await end('succeeded');
  await send('/v1/forget', 'ann', { ref });
  while ((await store.prune(100)) > 0);
  expect((await send(`/v1/record?ref=${ref}`, 'ann')).status).toBe(400);
  expect(acts).toMatchObject([{ act: 'forget', record: ref.split('@')[0], by: 'ann' }]);
});

test('a failure that is reopened is executed again, and the history names the token', async () => {
  const { acts, send, begin, end, actsIn } = await open();
  const ref = await end('failed');
  expect((await begin()).code).toBe('FAILED');
  expect((await send('/v1/reopen', 'worker', { ref })).status).toBe(403);
  const reopened = await send('/v1/reopen', 'ann', { ref, note: 'the card is valid again' });
  expect(reopened).toMatchObject({ status: 200, body: { record: { status: 'released' } } });
  expect(await actsIn(ref)).toMatchObject([{ act: 'reopen', by: 'ann', note: 'the card is valid again' }]);
  expect(acts).toEqual([
    { act: 'reopen', namespace: 'shop', tool: 'refund', record: ref.split('@')[0], by: 'ann' },
  ]);
  expect((await begin()).outcome).toBe('execute');
});

test('a verdict names its token, and one that is refused is no act', async () => {
  const { acts, send, end, actsIn } = await open();
  const ref = await end('unknown');
  expect((await send('/v1/forget', 'ann', { ref })).status).toBe(409);
  expect((await send('/v1/resolve', 'ann', { ref, verdict: 'landed' })).status).toBe(200);
  expect(await actsIn(ref)).toMatchObject([{ act: 'landed', by: 'ann' }]);
  expect(acts).toMatchObject([{ act: 'landed', record: ref.split('@')[0], by: 'ann' }]);
});
