// Where the turn is only guessed, a repeat after another change is a question: a retry must not be run again, and a new
// wish must not be answered as done.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { eventually } from '../cli/place.ts';
import { httpClient, stdioClient } from './clients.ts';
import { httpProxy } from './http-proxy.ts';
import { startV1 } from './http-servers.ts';
import { serverOf } from './npm-server.ts';
import { errorOf, isReplay, proxyPlace, soon } from './proxy.ts';
import type { RawClient } from './raw-client.ts';

const isQuestion = (answer: { _meta?: Record<string, unknown> } | undefined) =>
  answer?._meta?.['dev.semel/question'] !== undefined;

test('server-filesystem: on, off, on again is asked about, and leaves the file on', async () => {
  const here = proxyPlace();
  const root = here.path('root');
  mkdirSync(root);
  const a = join(root, 'a.txt');
  writeFileSync(a, 'light=off');
  const command = here.command([], [process.execPath, serverOf('server-filesystem'), root]);
  const client = await stdioClient('v1', command, here.env);
  const edit = (oldText: string, newText: string) =>
    client.call('edit_file', { path: a, edits: [{ oldText, newText }] });
  await edit('light=off', 'light=on');
  await edit('light=on', 'light=off');
  const third = await edit('light=off', 'light=on');
  expect(third.isError).toBe(true);
  expect(isQuestion(third)).toBe(true);
  expect(third.content[0]?.text).toMatch(/succeeded on .* UTC.*edit_file has run.*same call once more/s);
  expect(readFileSync(a, 'utf8')).toBe('light=off');

  expect((await edit('light=off', 'light=on')).isError).not.toBe(true);
  expect(readFileSync(a, 'utf8')).toBe('light=on');
  // Its own retry is a retry.
  expect((await edit('light=off', 'light=on'))._meta?.['dev.semel/replayed']).toBe(true);

  // What is passed on as idempotent changes something too.
  await client.call('write_file', { path: a, content: 'light=off' });
  expect(isQuestion(await edit('light=off', 'light=on'))).toBe(true);
});

test('server-memory: create, delete, create leaves what was created', async () => {
  const here = proxyPlace();
  const env = { ...here.env, MEMORY_FILE_PATH: here.path('memory.jsonl') };
  const command = here.command([], [process.execPath, serverOf('server-memory')]);
  const client = await stdioClient('v2 legacy', command, env);
  const entities = [{ name: 'ann', entityType: 'person', observations: [] }];
  await client.call('create_entities', { entities });
  await client.call('delete_entities', { entityNames: ['ann'] });
  const held = await client.call('create_entities', { entities });
  expect(isQuestion(held)).toBe(true);
  expect(held.content[0]?.text).toContain('delete_entities has run');
  expect((await client.call('create_entities', { entities })).isError).not.toBe(true);
  expect(readFileSync(here.path('memory.jsonl'), 'utf8')).toContain('ann');
});

const mail = { to: 'ann', text: 'hello' };
const crm = { contact: 'ann', note: 'mailed' };
async function died({ child }: RawClient): Promise<void> {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  await gone;
}

describe('a mail, another call, the same mail again', () => {
  test('is not sent twice without a word, and a retry with nothing in between is replayed', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', mail);
    expect(isReplay(await client.call('act', mail))).toBe(true);
    // A read changes nothing.
    await client.call('peek', {});
    expect(isReplay(await client.call('act', mail))).toBe(true);
    await client.call('act', crm);
    expect(isQuestion((await client.call('act', mail)).result)).toBe(true);
    expect(here.effects()).toHaveLength(3);
    // The other call is the last one: its retry is a retry.
    expect(isReplay(await client.call('act', crm))).toBe(true);
  });

  test('is asked about again by a proxy that was killed after its question', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', mail);
    await client.call('act', crm);
    expect(isQuestion((await client.call('act', mail)).result)).toBe(true);
    await died(client);
    const next = here.client();
    expect(isQuestion((await next.call('act', mail)).result)).toBe(true);
    expect(here.effects()).toHaveLength(2);
    expect((await next.call('act', mail)).result?.isError).not.toBe(true);
    expect(here.effects()).toHaveLength(3);
  });

  test('is asked about by another proxy, also after the first has answered the question', async () => {
    const here = proxyPlace();
    const [one, other] = [here.client(), here.client()];
    await one.call('act', mail);
    await other.call('act', crm);
    expect(isQuestion((await one.call('act', mail)).result)).toBe(true);
    // The second has asked nothing yet.
    expect(isQuestion((await other.call('act', mail)).result)).toBe(true);
    await one.call('act', mail);
    expect(here.effects()).toHaveLength(3);
    // What was asked about is no more: there is a newer one, and nothing has changed since.
    const again = await other.call('act', mail);
    expect(isReplay(again)).toBe(true);
    expect(again.result?.content?.[0]?.text).toBe('done 2');
    expect(here.effects()).toHaveLength(3);
  });

  test('killed while it is done on purpose, it is in doubt', async () => {
    const here = proxyPlace();
    const policy = here.policy({ 'act-then-wait': { effect: 'write-non-idempotent', ...soon } });
    const client = here.client(['--policy', policy]);
    here.open();
    await client.call('act-then-wait', mail);
    await client.call('act', crm);
    expect(isQuestion((await client.call('act-then-wait', mail)).result)).toBe(true);
    here.close();
    void client.call('act-then-wait', mail).catch(() => undefined);
    await eventually(() => here.effects().length === 3);
    await died(client);
    const next = here.client(['--policy', policy]);
    expect(errorOf(await next.call('act-then-wait', mail))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(3);
  });

  test('killed while it is done on purpose, it is in doubt for another proxy too, which knows the first answer', async () => {
    const here = proxyPlace();
    const policy = here.policy({ 'act-then-wait': { effect: 'write-non-idempotent', ...soon } });
    const [one, other] = [here.client(['--policy', policy]), here.client(['--policy', policy])];
    here.open();
    await one.call('act-then-wait', mail);
    await one.call('act', crm);
    for (const client of [one, other])
      expect(isQuestion((await client.call('act-then-wait', mail)).result)).toBe(true);
    here.close();
    void one.call('act-then-wait', mail).catch(() => undefined);
    await eventually(() => here.effects().length === 3);
    await died(one);
    expect(errorOf(await other.call('act-then-wait', mail))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(3);
  });

  test('made twice at once after the question, it is done once', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', mail);
    await client.call('act', crm);
    // In one piece: a call that is read after the question was written would count as its answer.
    const line = (id: number) =>
      `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'act', arguments: mail } })}\n`;
    client.write(line(1) + line(2));
    const held = [await client.answer(1), await client.answer(2)];
    expect(held.map(({ result }) => isQuestion(result))).toEqual([true, true]);
    await Promise.all([client.call('act', mail), client.call('act', mail)]);
    expect(here.effects()).toHaveLength(3);
  });

  test('in a turn that is known, it is answered as done: nothing is guessed there', async () => {
    const here = proxyPlace();
    const client = here.client(['--conversation', 'c', '--turn', '1']);
    await client.call('act', mail);
    await client.call('act', crm);
    expect(isReplay(await client.call('act', mail))).toBe(true);
  });

  test('with a key of the client it is the same call, whatever came in between', async () => {
    const here = proxyPlace();
    const client = here.client();
    const own = { idempotencyKey: 'k-1' };
    await client.call('act', mail, own);
    await client.call('act', crm);
    expect(isReplay(await client.call('act', mail, own))).toBe(true);
  });

  test('is asked about also where its result was too large to be kept', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('large', mail);
    expect(errorOf(await client.call('large', mail))?.code).toBe('RESULT_OMITTED');
    await client.call('act', crm);
    expect(isQuestion((await client.call('large', mail)).result)).toBe(true);
  });

  test('a call in between that was turned away has changed nothing', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', mail);
    await client.call('error', { code: -32602 });
    expect(isReplay(await client.call('act', mail))).toBe(true);
  });

  test('a call that ended after it, though it began before, has changed something', async () => {
    const here = proxyPlace();
    const client = here.client();
    const slow = client.call('wait-then-act', crm);
    await eventually(() => here.lines('arrived').length === 1);
    await client.call('act', mail);
    here.open();
    await slow;
    expect(isQuestion((await client.call('act', mail)).result)).toBe(true);
  });

  test('a call that was killed beside it may have changed something', async () => {
    const here = proxyPlace();
    const client = here.client();
    void client.call('wait-then-act', crm).catch(() => undefined);
    await eventually(() => here.lines('arrived').length === 1);
    await client.call('act', mail);
    await died(client);
    expect(isQuestion((await here.client().call('act', mail)).result)).toBe(true);
  });
});

test('over HTTP each caller has its own last change, and a caller is asked only what it was told', async () => {
  const here = proxyPlace();
  const upstream = await startV1({ effects: here.path('effects') });
  const proxy = await httpProxy(upstream, here.env);
  const [ann, bob] = await Promise.all(
    ['Bearer ann', 'Bearer bob'].map((authorization) => httpClient('v1', proxy.url, { authorization })),
  );
  const send = (client: typeof ann, to: string) => client!.call('send', { to });
  await send(ann, 'x');
  await send(bob, 'y');
  expect((await send(ann, 'x'))._meta?.['dev.semel/replayed']).toBe(true);
  // Passed on as idempotent, and noted.
  await ann!.call('put', { to: 'x' });
  expect(isQuestion(await send(ann, 'x'))).toBe(true);
  // Nobody has read a question so soon: this one was sent beside it.
  expect(isQuestion(await send(ann, 'x'))).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, limits.thinkMs + 100));
  expect((await send(ann, 'x')).isError).not.toBe(true);
  expect(here.lines('effects').filter((line) => line.startsWith('send x'))).toHaveLength(2);
});

test('over HTTP a question to one session is not answered by another one, which has not heard it', async () => {
  const here = proxyPlace();
  const upstream = await startV1({ effects: here.path('effects') });
  const proxy = await httpProxy(upstream, here.env);
  const [asked, other] = await Promise.all(
    [1, 2].map(() => httpClient('v1', proxy.url, { authorization: 'Bearer ann' })),
  );
  const send = (client: typeof asked) => client!.call('send', { to: 'x' });
  const sent = () => here.lines('effects').filter((line) => line.startsWith('send x'));
  await send(asked);
  await asked!.call('put', { to: 'x' });
  expect(isQuestion(await send(asked))).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, limits.thinkMs + 100));
  expect(isQuestion(await send(other))).toBe(true);
  expect(sent()).toHaveLength(1);
  // Whoever was asked may still answer, once.
  expect((await send(asked)).isError).not.toBe(true);
  await new Promise((resolve) => setTimeout(resolve, limits.thinkMs + 100));
  expect((await send(other))._meta?.['dev.semel/replayed']).toBe(true);
  expect(sent()).toHaveLength(2);
});

test('`repeat: "by-call"` warns where the client sends no tool call id', async () => {
  const here = proxyPlace();
  const policy = here.policy({ act: { effect: 'write-non-idempotent', repeat: 'by-call' } });
  const client = here.client(['--policy', policy]);
  const meta = (id: string) => ({ _meta: { 'claudecode/toolUseId': id } });
  await client.call('act', mail, meta('toolu_1'));
  await client.call('act', mail, meta('toolu_2'));
  expect(here.effects()).toHaveLength(2);
  expect(client.stderr()).not.toContain('by-call');
  await client.call('act', mail);
  await eventually(() => /by-call.*has no effect/.test(client.stderr()));
});

describe('after an error of the tool', () => {
  test('server-filesystem: ENOENT, the source is made, and the same move goes through', async () => {
    const here = proxyPlace();
    const root = here.path('root');
    mkdirSync(root);
    const command = here.command([], [process.execPath, serverOf('server-filesystem'), root]);
    const client = await stdioClient('v1', command, here.env);
    const move = { source: join(root, 'a.txt'), destination: join(root, 'b.txt') };
    const failed = await client.call('move_file', move);
    expect(failed.isError).toBe(true);
    expect(failed.content.at(-1)?.text).toMatch(/Correct the cause by another tool of this server/);
    // A blind retry is held, however often.
    for (const _ of [1, 2, 3])
      expect((await client.call('move_file', move)).content[0]?.text).toMatch(
        /"code":"IN_DOUBT".*Correct the cause by another tool of this server/,
      );
    await client.call('write_file', { path: move.source, content: 'here' });
    const held = await client.call('move_file', move);
    expect(isQuestion(held)).toBe(true);
    expect(held.content[0]?.text).toMatch(/ended with an error.*ENOENT.*write_file has run/s);
    expect((await client.call('move_file', move)).isError).not.toBe(true);
    expect(readFileSync(move.destination, 'utf8')).toBe('here');
    const records = (await here.json('ls')) as { contract: string; key: string }[];
    const key = records.find(({ contract }) => contract.endsWith('move_file'))?.key as string;
    const { history } = (await here.json('show', key)) as { history: { detail: { by?: string } }[] };
    expect(history.map(({ detail }) => detail.by)).toContain('the model, through semel mcp');
  });

  test('another failure is no sign that anything was corrected', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('fail', { n: 1 });
    await client.call('fail', { n: 2 });
    for (const _ of [1, 2]) expect(errorOf(await client.call('fail', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(2);
  });

  test('nor is the failure of a call that passes', async () => {
    const here = proxyPlace();
    const policy = here.policy({ error: 'write-idempotent' });
    const client = here.client(['--policy', policy]);
    await client.call('fail', { n: 1 });
    await client.call('error', { code: -32603 });
    for (const _ of [1, 2]) expect(errorOf(await client.call('fail', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
  });

  test('what cannot be undone, or is of high stakes, is for a person', async () => {
    const here = proxyPlace();
    const policy = here.policy({ fail: { effect: 'irreversible', per: 'ever' } });
    const client = here.client(['--policy', policy]);
    await client.call('fail', { n: 1 });
    await client.call('act', { n: 1 });
    for (const _ of [1, 2]) expect(errorOf(await client.call('fail', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(2);
  });

  test('a call whose reply was lost is not asked about: nobody knows how it ended', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('die', { n: 1 });
    await client.ended;
    const next = here.client();
    await next.call('act', { n: 1 });
    for (const _ of [1, 2]) expect(errorOf(await next.call('die', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(2);
  });

  test('in a known turn too, and by a JSON-RPC error, the cause can be corrected', async () => {
    const here = proxyPlace();
    const client = here.client(['--conversation', 'c', '--turn', '1']);
    const broken = { code: -32603 };
    await client.call('error', broken);
    expect(errorOf(await client.call('error', broken))?.code).toBe('IN_DOUBT');
    await client.call('act', { n: 1 });
    expect(isQuestion((await client.call('error', broken)).result)).toBe(true);
    expect((await client.call('error', broken)).error?.message).toBe('as it was asked');
  });
});
