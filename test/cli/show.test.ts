// `semel show`: all that is known of a record, and what to type next.

import { landed, type StoreEvent, unsure } from 'semel';
import { describe, expect, test } from 'vitest';
import { attemptsOf } from '../../src/cli/commands/show/attempts.ts';
import { nextSteps } from '../../src/cli/commands/show/next.ts';
import { timelineOf } from '../../src/cli/commands/show/timeline.ts';
import { rig } from '../library/support.ts';
import { operator } from './operator.ts';

const desk = operator();

test('a record is shown with its evidence, its timeline, and the commands that fit, as a shell reads them', async () => {
  const { key, id } = await desk.by(async (semel, mail) => {
    const { receipt } = await mail.try({ to: 'ann', text: 'hello' }, { conversation: 'c-1', run: 'r-9' });
    await mail({ to: 'ann', text: 'dear Ann' }, { conversation: 'c-1' });
    await mail({ to: 'ann', text: 'dear Ann' }, { conversation: 'c-1' });
    await semel.records.annotate(receipt.key, { exit: 3, tookMs: 2_100, tail: 'one\n\u001b[31mtwo\n' });
    return receipt;
  });
  for (const name of [id, id.slice(0, 5), `${id}@1`, `${id}@99`, key]) {
    const { code, stdout } = await desk.semel(['show', name]);
    expect(code).toBe(0);
    expect(stdout).toContain(`${id}@1  mail.send  succeeded`);
  }
  const { stdout } = await desk.semel(['show', id]);
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
  for (const part of [
    `key         ${key}`,
    'context     conversation c-1, run r-9',
    'args        {"to":"ann","text":"hello"}',
    'drift       replays were worded differently in: text',
    'result      {"id":"m-ann"}',
    '1 in total, the last by ',
    'the command ended: exit 3 after 2.1s',
    '    | one\n    | \\u001b[31mtwo\n',
    'created: the first claim',
    'settled: succeeded',
    'replayed 2 times to ',
    'its result is removed; the key stays for good',
    `semel forget ${id}@1 --namespace shop --store ${desk.store}`,
  ])
    expect(stdout).toContain(part);
  const json = (await desk.semel(['show', id, '--json'])).json<Record<string, unknown>>();
  expect(Object.keys(json)).toEqual(['record', 'sent', 'drift', 'attempts', 'timeline', 'next', 'history']);
  expect(json).toMatchObject({
    record: { id, value: { id: 'm-ann' } },
    drift: ['text'],
    attempts: [{ fence: 1, tail: ['one', '\u001b[31mtwo'] }],
    next: [{ command: expect.stringContaining('semel forget') }],
  });
});

test('what a command printed last is shown in linear time, however it ends', async () => {
  const { semel } = rig();
  await semel.once('post', 1, () => 'done');
  const [record] = (await semel.records.list()).items;
  const { generation, key } = record!;
  const tail = `one\n${' '.repeat(1_000_000)}two${' '.repeat(1_000_000)}`;
  const detail = { exit: 1, tookMs: 5, tail };
  const noted = { at: 0, namespace: 'test', key, generation, fence: 1, type: 'noted', detail } as const;
  expect(attemptsOf(record!, [noted])[0]!.tail).toEqual(['one', `${' '.repeat(1_000_000)}two`]);
});

describe('what was sent to the target is shown', () => {
  test('of a tool: its key, and the mark that it left there', async () => {
    const seen = await desk.by(async (semel) => {
      let sent = {};
      const tool = semel.tool({
        name: 'charge',
        effect: 'irreversible',
        per: 'ever',
        run: (_: { n: number }, ctx) => {
          sent = { key: ctx.key, mark: ctx.mark() };
          throw new Error('socket hang up');
        },
      });
      const { receipt } = await tool.try({ n: 1 });
      return { id: receipt.id, sent: sent as { key: string; mark: string } };
    });
    const { stdout } = await desk.semel(['show', seen.id]);
    expect(stdout).toContain(`  sent as     ${seen.sent.key}  mark ${seen.sent.mark}\n`);
    expect((await desk.semel(['show', seen.id, '--json'])).json()).toMatchObject({ sent: seen.sent });
  });

  test('of a command: SEMEL_KEY_UUID', async () => {
    const script = 'echo "$SEMEL_KEY_UUID" > sent; exit 28';
    await desk.semel(['once', 'post', '--id', 'n=1', '--', 'sh', '-c', script]);
    const [{ id }] = (await desk.semel(['doubt', '--tool', 'post', '--json'])).json<[{ id: string }]>();
    expect((await desk.semel(['show', id])).stdout).toContain(
      `sent as     ${desk.lines('sent')[0]}  mark semel-`,
    );
  });

  test('not of a call that was freed: its next attempt may get another key', async () => {
    const { key } = await desk.by(async (semel, mail) => {
      const { receipt } = await mail.try({ to: 'no-one' });
      await semel.records.reopen(receipt.key);
      return receipt;
    });
    expect((await desk.semel(['show', key])).stdout).not.toContain('sent as');
  });
});

test('an attempt whose reply was lost did not crash', async () => {
  const { semel } = rig();
  let hasLanded = false;
  const tool = semel.tool({
    name: 'post',
    effect: 'irreversible',
    per: 'ever',
    verify: () => (hasLanded ? landed('sent') : unsure()),
    run: (_: { n: number }): string => {
      throw new Error('socket hang up');
    },
  });
  await tool.try({ n: 1 });
  hasLanded = true;
  const { receipt } = await tool.try({ n: 1 });
  const record = await semel.records.get(receipt.key);
  expect(record).toMatchObject({ status: 'succeeded' });
  const history = await semel.records.history(receipt.key);
  const attempts = attemptsOf(record!, history).map(({ what }) => what);
  expect(attempts[0]).toBe('ended without knowing whether it landed, and was taken over');
});

test('without a record, it says how to name one', async () => {
  await desk.by((semel) => semel.once('pay', 1, () => 'done'));
  for (const [args, message] of [
    [[], 'expects one record'],
    [['abc'], 'too short to name a record'],
    [['zzzzzz'], 'There is no record zzzzzz in shop'],
    [['mail.send'], 'That is a contract: `semel ls --tool mail.send` lists its records.'],
    [['pay'], 'That is a contract: `semel ls --tool pay` lists its records.'],
    [['zzzzzz', '--namespace', 'elsewhere'], 'there are also: shop'],
    [['mail.send/-/nothing'], 'There is no record mail.send/-/nothing'],
  ] as const) {
    const { code, stderr } = await desk.semel(['show', ...args]);
    expect(stderr).toContain(message);
    expect(code).toBe(64);
  }
});

describe('what can be done next', () => {
  const options = '--namespace test';
  const now = Date.UTC(2026, 5, 19, 9, 2);

  async function made() {
    const { semel, clock } = rig();
    const tool = semel.tool({
      name: 'post',
      effect: 'irreversible',
      per: 'ever',
      run: (_: { n: number }) => {
        throw new Error('reset');
      },
    });
    const { receipt } = await tool.try({ n: 1 });
    const record = async () => (await semel.records.get(receipt.key))!;
    const commands = async () =>
      nextSteps(await record(), options, clock.now()).map(({ command }) => command);
    return { semel, clock, record, commands };
  }

  test('in doubt: every verdict, under the fence that is shown', async () => {
    const { record, commands } = await made();
    const { ref } = await record();
    expect(await commands()).toEqual([
      `semel resolve ${ref} landed --result '<json>' ${options}`,
      `semel resolve ${ref} not-landed ${options}`,
      `semel resolve ${ref} run-again ${options}`,
      `semel resolve ${ref} abandon -m "why" ${options}`,
    ]);
  });

  test('in doubt: "not landed" comes with the time from which it may be said', async () => {
    const { record, clock } = await made();
    const why = async () => nextSteps(await record(), options, clock.now())[1]!.why;
    expect(await why()).toMatch(/in .*: a request may still be on its way/);
    clock.jump(3_600_000);
    expect(await why()).toBe('it did not land: the next call executes');
  });

  test('given up: retry makes it an open question', async () => {
    const { semel, record, commands } = await made();
    await semel.doubts.resolve((await record()).ref, { abandon: 'no idea' });
    const { ref } = await record();
    expect(await commands()).toEqual([`semel retry ${ref} ${options}`]);
  });

  test('freed to run again: the next call executes, or somebody changes the decision', async () => {
    const { semel, record, commands } = await made();
    await semel.doubts.resolve((await record()).ref, 'runAgain');
    expect(await commands()).toEqual([undefined, expect.stringContaining('landed --result')]);
  });

  test('running: its process can be said to have died', async () => {
    const { semel } = rig();
    const tool = semel.tool({ name: 'post', effect: 'irreversible', per: 'ever', run: (_: object) => 1 });
    await semel.begin(tool, {});
    const [record] = (await semel.records.list()).items;
    expect(nextSteps(record!, options, now)[1]!.command).toBe(`semel resolve ${record!.ref} died ${options}`);
  });
});

test('the timeline describes every kind of event, in chronological order', async () => {
  const { semel, clock } = rig();
  await semel.once('post', 1, () => 'done');
  const [record] = (await semel.records.list()).items;
  let at = clock.now();
  const event = (
    type: StoreEvent['type'],
    detail: Record<string, unknown>,
    generation = record!.generation,
  ) => {
    at += 1_000;
    return { at, namespace: 'test', key: record!.key, generation, fence: 1, type, detail };
  };
  const history = [
    event('takeover', { from: 'host:1', fence: 1, dispatched: true, for: 'verify' }),
    event('fenced', { outcome: 'failed', fence: 1, error: 'refused' }),
    event('lateNews', { fence: 1, instead: 'lapsed' }),
    event('duplicate', { fence: 2 }),
    event('contradiction', { outcome: 'succeeded', fence: 3 }),
    event('cleared', {}),
    event('resolved', { act: 'abandon', by: 'ann', note: 'late', reason: 'no idea' }),
    event('poisoned', { crashes: 10 }),
    event('replayed', { owner: 'host:2', turn: '3' }),
    event('replayed', { owner: 'host:2', turn: '3', times: 40 }),
    event('conflict', { owner: 'host:3' }),
    event('observed', { would: 'replay' }),
    event('noted', { url: 'https://x' }),
    event('noted', { exit: null, signal: 'SIGKILL', tookMs: 5 }, 0),
  ];
  const told = timelineOf(record!, history, clock.now());
  expect(told.map(({ at: when }) => when.getTime())).toEqual(
    told.map(({ at: when }) => when.getTime()).sort(),
  );
  expect(told.filter(({ alarm }) => alarm)).toHaveLength(2);
  expect(told.map(({ what }) => what).slice(3, -1)).toEqual([
    'taken over from host:1, which had dispatched, to ask verify',
    'an attempt that had lost the claim reported: failed (refused)',
    'late success: the attempt with fence 1 had succeeded',
    'DUPLICATE: it landed a second time (the attempt with fence 2)',
    'CONTRADICTION: the attempt with fence 3 reports succeeded, against what was settled',
    'verify said: not landed',
    'ann decided: abandon (no idea; late)',
    'given up as poison: 10 attempts died before they dispatched anything',
    'replayed 41 times to host:2, turn 3',
    'refused: the same key for other identity args, by host:3',
    'observed: semel would have said replay',
    'noted: {"url":"https://x"}',
    'the command ended: ended by SIGKILL after 5ms (in an earlier generation)',
  ]);
});
