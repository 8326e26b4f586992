// Where the turn is only guessed, an equal call is a question to the model: a retry must not be run again, and a new wish
// must not be answered as done. Only the tool that semel adds answers it, because clients repeat calls by themselves.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually } from '../cli/place.ts';
import { type CallResult, httpClient, type SdkClient, stdioClient } from './clients.ts';
import { httpProxy } from './http-proxy.ts';
import { startV1, startV2 } from './http-servers.ts';
import { serverOf } from './npm-server.ts';
import { errorOf, fake, isQuestion, isReplay, proxyPlace, refIn, soon } from './proxy.ts';
import type { RawClient } from './raw-client.ts';

const again = 'semel_run_again';
const allow = async (client: SdkClient, held: CallResult) => {
  const answer = await client.call(again, { ref: refIn(held) });
  expect(answer.isError).not.toBe(true);
  return answer;
};
const allowRaw = async (client: RawClient, held: Awaited<ReturnType<RawClient['call']>>) =>
  (await client.call(again, { ref: refIn(held.result) })).result;

test.each(['v1', 'v2 legacy'] as const)(
  'server-filesystem, %s: on, off, on again is asked about, and leaves the file on',
  async (version) => {
    const here = proxyPlace();
    const root = here.path('root');
    mkdirSync(root);
    const a = join(root, 'a.txt');
    writeFileSync(a, 'light=off');
    const command = here.command([], [process.execPath, serverOf('server-filesystem'), root]);
    const client = await stdioClient(version, command, here.env);
    expect(await client.tools()).toContain(again);
    const edit = (oldText: string, newText: string) =>
      client.call('edit_file', { path: a, edits: [{ oldText, newText }] });
    await edit('light=off', 'light=on');
    await edit('light=on', 'light=off');
    const third = await edit('light=off', 'light=on');
    expect(third.isError).toBe(true);
    expect(third.content[0]?.text).toMatch(/succeeded on .* UTC.*semel_run_again with ref "[0-9a-z]+@\d+"/s);
    // A client that retries on errors answers nothing by that.
    for (const _ of [1, 2, 3]) expect(isQuestion(await edit('light=off', 'light=on'))).toBe(true);
    expect(readFileSync(a, 'utf8')).toBe('light=off');

    const allowed = await allow(client, third);
    expect(allowed.content[0]?.text).toBe('edit_file may run once more. Make the same call again now.');
    expect((await edit('light=off', 'light=on')).isError).not.toBe(true);
    expect(readFileSync(a, 'utf8')).toBe('light=on');
    // It ran once: the next one is a question again, and the old ref means nothing.
    expect(isQuestion(await edit('light=off', 'light=on'))).toBe(true);
    expect((await client.call(again, { ref: refIn(third) })).isError).toBe(true);
    expect(isQuestion(await edit('light=off', 'light=on'))).toBe(true);
  },
);

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
  await allow(client, held);
  expect((await client.call('create_entities', { entities })).isError).not.toBe(true);
  expect(readFileSync(here.path('memory.jsonl'), 'utf8')).toContain('ann');
});

const mail = { to: 'ann', text: 'hello' };
async function died({ child }: RawClient): Promise<void> {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  await gone;
}

describe('the same mail again', () => {
  test('is not sent, however often it is called, until the model confirms it', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', mail);
    const held = await client.call('act', mail);
    expect(isQuestion(held.result)).toBe(true);
    expect(held.result?.content?.map(({ text }) => text).at(-1)).toBe('done 1');
    expect(held.result?.structuredContent).toEqual({ n: 1, of: mail });
    for (const _ of [1, 2]) expect(isQuestion((await client.call('act', mail)).result)).toBe(true);
    expect(here.effects()).toHaveLength(1);
    expect((await allowRaw(client, held))?.isError).not.toBe(true);
    expect((await client.call('act', mail)).result?.content?.[0]?.text).toBe('done 2');
    expect(isQuestion((await client.call('act', mail)).result)).toBe(true);
    expect(here.effects()).toHaveLength(2);
    const records = (await here.json('ls')) as { key: string }[];
    const { history } = (await here.json('show', records[0]?.key as string)) as {
      history: { detail: { by?: string } }[];
    };
    expect(history.map(({ detail }) => detail.by)).toContain('the model, through semel mcp');
  });

  test('sent beside the first one, it shares its answer: nobody can have known that one', async () => {
    const here = proxyPlace();
    const client = here.client();
    const [one, two] = [client.call('wait-then-act', mail), client.call('wait-then-act', mail)];
    await eventually(() => here.lines('arrived').length === 1);
    const three = client.call('wait-then-act', mail);
    await client.call('act', { n: 1 });
    here.open();
    for (const answer of [await one, await two, await three]) {
      expect(answer.result?.isError).not.toBe(true);
      expect(answer.result?.content?.[0]?.text).toBe('done');
    }
    expect(here.effects()).toHaveLength(2);
  });

  test('under the same id of the model’s call it is a retry, and gets the kept answer', async () => {
    const here = proxyPlace();
    const client = here.client();
    const by = (id: string) => ({ _meta: { 'claudecode/toolUseId': id } });
    await client.call('act', mail, by('toolu_01A9k3JdmQ8zXw5Tn2Vb7c'));
    expect(isReplay(await client.call('act', mail, by('toolu_01A9k3JdmQ8zXw5Tn2Vb7c')))).toBe(true);
    expect(isQuestion((await client.call('act', mail, by('toolu_01B7h2LpnR4yUv6Sk9Wc3d'))).result)).toBe(
      true,
    );
    // Some clients count their calls anew in each conversation.
    await client.call('act', { n: 2 }, by('call_1'));
    expect(isQuestion((await client.call('act', { n: 2 }, by('call_1'))).result)).toBe(true);
    expect(here.effects()).toHaveLength(2);
  });

  test('a proxy that was killed asks again: its ref means nothing to the next one', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', mail);
    const held = await client.call('act', mail);
    await died(client);
    const next = here.client();
    expect((await allowRaw(next, held))?.content?.[0]?.text).toMatch(/^No call was held back under this ref/);
    const asked = await next.call('act', mail);
    expect(isQuestion(asked.result)).toBe(true);
    await allowRaw(next, asked);
    expect((await next.call('act', mail)).result?.isError).not.toBe(true);
    expect(here.effects()).toHaveLength(2);
  });

  test('two proxies are asked apart, and what one has allowed is done once', async () => {
    const here = proxyPlace();
    const [one, other] = [here.client(), here.client()];
    await one.call('act', mail);
    const [held, also] = [await one.call('act', mail), await other.call('act', mail)];
    await allowRaw(one, held);
    expect((await one.call('act', mail)).result?.content?.[0]?.text).toBe('done 2');
    // What it was asked about is no more.
    const late = await allowRaw(other, also);
    expect(late?.isError).toBe(true);
    expect(late?.content?.[0]?.text).toBe('act has run since, or runs now. Make the same call again to see.');
    expect(isQuestion((await other.call('act', mail)).result)).toBe(true);
    expect(here.effects()).toHaveLength(2);
  });

  test('what one proxy has allowed, another may run, and does not answer as done', async () => {
    const here = proxyPlace();
    const [one, other] = [here.client(), here.client()];
    await other.call('act', mail);
    await other.call('act', mail);
    await allowRaw(one, await one.call('act', mail));
    expect((await other.call('act', mail)).result?.content?.[0]?.text).toBe('done 2');
    expect(here.effects()).toHaveLength(2);
  });

  test('allowed twice by one ref, and made twice at once, it is done once', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('act', mail);
    const held = await client.call('act', mail);
    await Promise.all([allowRaw(client, held), allowRaw(client, held)]);
    await Promise.all([client.call('act', mail), client.call('act', mail)]);
    expect(here.effects()).toHaveLength(2);
  });

  test('killed while it is done on purpose, it is in doubt, and the model cannot allow that', async () => {
    const here = proxyPlace();
    const policy = here.policy({ 'act-then-wait': { effect: 'write-non-idempotent', ...soon } });
    const [one, other] = [here.client(['--policy', policy]), here.client(['--policy', policy])];
    here.open();
    await one.call('act-then-wait', mail);
    const [held, also] = [await one.call('act-then-wait', mail), await other.call('act-then-wait', mail)];
    await allowRaw(one, held);
    here.close();
    void one.call('act-then-wait', mail).catch(() => undefined);
    await eventually(() => here.effects().length === 2);
    await died(one);
    expect(errorOf(await other.call('act-then-wait', mail))?.code).toBe('IN_DOUBT');
    expect((await allowRaw(other, also))?.isError).toBe(true);
    expect(errorOf(await other.call('act-then-wait', mail))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(2);
  });

  test('in a turn that is known, it is answered as done: nothing is guessed there', async () => {
    const here = proxyPlace();
    const client = here.client(['--conversation', 'c', '--turn', '1']);
    await client.call('act', mail);
    await client.call('act', { n: 1 });
    expect(isReplay(await client.call('act', mail))).toBe(true);
  });

  test('and done again as soon as an operator has forgotten it', async () => {
    const here = proxyPlace();
    const client = here.client(['--conversation', 'c', '--turn', '1']);
    await client.call('act', mail);
    expect(isReplay(await client.call('act', mail))).toBe(true);
    const [record] = (await here.json('ls')) as { ref: string }[];
    await here.json('forget', record?.ref as string, '--yes');
    expect((await client.call('act', mail)).result?.content?.[0]?.text).toBe('done 2');
  });

  test('a call with the same idempotency key from the client is a replay', async () => {
    const here = proxyPlace();
    const client = here.client();
    const own = { idempotencyKey: 'k-1' };
    await client.call('act', mail, own);
    expect(isReplay(await client.call('act', mail, own))).toBe(true);
  });

  test('is asked about also where its result was too large to be kept', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('large', mail);
    const held = await client.call('large', mail);
    expect(isQuestion(held.result)).toBe(true);
    expect(held.result?.content?.[0]?.text).toContain('its result was not kept');
  });

  test('names the fields that are worded differently', async () => {
    const here = proxyPlace();
    const policy = here.policy({ act: { effect: 'write-non-idempotent', content: ['text'] } });
    const client = here.client(['--policy', policy]);
    await client.call('act', mail);
    const held = await client.call('act', { ...mail, text: 'hello again' });
    expect(held.result?.content?.[0]?.text).toMatch(/^Not run again\. .*\(yours differs in text\)/);
  });
});

describe('over HTTP', () => {
  test.each([
    ['v1', startV1],
    ['v1, as JSON', (shop: Parameters<typeof startV1>[0]) => startV1(shop, true)],
    ['v2 modern', startV2],
  ] as const)('%s: each caller is asked, and may allow only what it was asked about', async (name, start) => {
    const here = proxyPlace();
    const proxy = await httpProxy(await start({ effects: here.path('effects') }), here.env);
    const version = name === 'v2 modern' ? name : 'v1';
    const [ann, bob] = (await Promise.all(
      ['Bearer ann', 'Bearer bob'].map((authorization) => httpClient(version, proxy.url, { authorization })),
    )) as [SdkClient, SdkClient];
    const sent = () => here.lines('effects').filter((line) => line.startsWith('send x'));
    expect(await ann.tools()).toContain(again);
    await ann.call('send', { to: 'x' });
    const held = await ann.call('send', { to: 'x' });
    expect(isQuestion(held)).toBe(true);
    expect((await bob.call(again, { ref: refIn(held) })).isError).toBe(true);
    expect(isQuestion(await ann.call('send', { to: 'x' }))).toBe(true);
    await allow(ann, held);
    expect((await ann.call('send', { to: 'x' })).isError).not.toBe(true);
    expect(sent()).toHaveLength(2);
  });
});

describe('the tool that semel adds', () => {
  test('is listed once, and not if nothing can be held', async () => {
    const here = proxyPlace();
    const names = async (policy: object) => {
      const client = here.client(['--policy', here.policy(policy)]);
      const { result } = await client.request('tools/list', {});
      await died(client);
      return ((result as unknown as { tools: { name: string }[] }).tools ?? []).map(({ name }) => name);
    };
    const all = await names({});
    expect(all.filter((name) => name === again)).toHaveLength(1);
    const reads = Object.fromEntries(all.map((name) => [name, 'read']));
    expect(await names(reads)).toEqual(all.filter((name) => name !== again));
  });

  test('of a proxy behind this one is reached through this one', async () => {
    const here = proxyPlace();
    const inner = here.command(['--name', 'inner'], [process.execPath, fake, here.folder]);
    const outer = (turn: string) =>
      stdioClient(
        'v1',
        here.command(['--name', 'outer', '--conversation', 'c', '--turn', turn], inner),
        here.env,
      );
    await (await outer('1')).call('act', mail);
    const client = await outer('2');
    expect((await client.tools()).filter((name) => name === again)).toHaveLength(1);
    const held = await client.call('act', mail);
    expect(isQuestion(held)).toBe(true);
    await allow(client, held);
    expect((await client.call('act', mail)).isError).not.toBe(true);
    expect(here.effects()).toHaveLength(2);
  });

  test.each([[{}], [{ ref: 7 }], [{ ref: 'abc@1' }], [undefined]])(
    'answers %j with an error, and runs nothing',
    async (args) => {
      const here = proxyPlace();
      const client = here.client();
      const { result } = await client.call(again, args as never);
      expect(result?.isError).toBe(true);
      expect(result?.content?.[0]?.text).toMatch(/^No call was held back/);
      expect(here.received()).not.toContain(again);
    },
  );
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
    const [, ref] = /corrected the cause, call semel_run_again with ref "([^"]+)"/.exec(
      failed.content.at(-1)?.text ?? '',
    ) as unknown as [string, string];
    // A blind retry is held, however often.
    for (const _ of [1, 2, 3]) {
      const held = await client.call('move_file', move);
      expect(held.content[0]?.text).toMatch(/failed on .*ENOENT.*check that first/s);
      expect(refIn(held)).toBe(ref);
      // The text and the error say the same, the first time and later.
      const advice = errorOf({ result: failed })?.correctiveAction;
      expect(failed.content.at(-1)?.text).toContain(advice);
      expect(errorOf({ result: held })?.correctiveAction).toBe(advice);
    }
    await client.call('write_file', { path: move.source, content: 'here' });
    expect((await client.call(again, { ref })).isError).not.toBe(true);
    expect((await client.call('move_file', move)).isError).not.toBe(true);
    expect(readFileSync(move.destination, 'utf8')).toBe('here');
  });

  test('what cannot be undone, or is of high stakes, is for a person', async () => {
    const here = proxyPlace();
    for (const terms of [
      { effect: 'irreversible', per: 'ever' },
      { effect: 'write-non-idempotent', stakes: 'high' },
    ]) {
      const client = here.client(['--policy', here.policy({ fail: terms })]);
      const args = { n: JSON.stringify(terms) };
      const first = await client.call('fail', args);
      expect(first.result?.content?.at(-1)?.text).not.toContain(again);
      const error = errorOf(await client.call('fail', args));
      expect(error?.code).toBe('IN_DOUBT');
      expect((await client.call(again, { ref: error?.evidence?.ref })).result?.isError).toBe(true);
      expect(errorOf(await client.call('fail', args))?.code).toBe('IN_DOUBT');
    }
    expect(here.effects()).toHaveLength(2);
  });

  test('a call whose reply was lost is not offered for a repeat: its outcome is unknown', async () => {
    const here = proxyPlace();
    const client = here.client();
    await client.call('die', { n: 1 });
    await client.ended;
    const next = here.client();
    const error = errorOf(await next.call('die', { n: 1 }));
    expect(error?.code).toBe('IN_DOUBT');
    expect((await next.call(again, { ref: error?.evidence?.ref })).result?.isError).toBe(true);
    expect(errorOf(await next.call('die', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
  });

  test('in a known turn too, and by a JSON-RPC error, the cause can be corrected', async () => {
    const here = proxyPlace();
    const client = here.client(['--conversation', 'c', '--turn', '1']);
    const broken = { code: -32603 };
    await client.call('error', broken);
    const held = await client.call('error', broken);
    expect(isQuestion(held.result)).toBe(true);
    await allowRaw(client, held);
    expect((await client.call('error', broken)).error?.message).toBe('as it was asked');
  });
});
