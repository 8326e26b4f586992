// What semel tells the program around it, as it happens.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type EventName, eventNames, notLanded, type SemelEvents } from 'semel';
import { describe, expect, test } from 'vitest';
import { gate, rest, rig } from './support.ts';

const base = {
  name: 'post',
  effect: 'write-non-idempotent',
  per: 'ever',
  lease: '30s',
  timeout: '2h',
} as const;

/** A target that does not honour keys, and a worker that is asleep until it is woken. */
function sleeper(made: ReturnType<typeof rig>, id: string) {
  const wake = gate<string>();
  const semel = made.another();
  const call = semel.tool({ ...base, identity: ['id'], run: () => wake.promise }).try({ id });
  return { wake, call };
}

const happen: Record<EventName, (made: ReturnType<typeof rig>) => Promise<unknown>> = {
  claimed: ({ semel }) => semel.tool({ ...base, run: () => 1 })({}),
  dispatched: ({ semel }) =>
    semel.tool({ ...base, dispatch: 'explicit', run: (_args: object, ctx) => ctx.dispatch() })({}),
  settled: ({ semel }) => semel.tool({ ...base, run: () => 1 })({}),
  async replayed({ semel }) {
    const tool = semel.tool({ ...base, run: () => 1 });
    await tool({});
    await tool({});
  },
  async busy({ semel }) {
    const end = gate();
    const tool = semel.tool({ ...base, ifBusy: 'fail', run: () => end.promise });
    const first = tool({});
    await rest();
    await tool.try({});
    end.resolve();
    await first;
  },
  async conflict({ semel }) {
    const tool = semel.tool({ ...base, run: () => 1 });
    await tool({ id: 1 }, { key: 'k' });
    await tool.try({ id: 2 }, { key: 'k' });
  },
  released: ({ semel }) =>
    semel
      .tool({
        ...base,
        dispatch: 'explicit',
        run: () => {
          throw new Error('before the line');
        },
      })
      .try({}),
  doubt: ({ semel }) =>
    semel
      .tool({
        ...base,
        run: () => {
          throw new Error('reset');
        },
      })
      .try({}),
  async takeover(made) {
    const lazy = { ...base, dispatch: 'explicit' } as const;
    void made.semel.tool({ ...lazy, run: () => new Promise(() => undefined) }).try({});
    await rest();
    made.clock.jump(31_000);
    await made.another().tool({ ...lazy, run: (_args: object, ctx) => ctx.dispatch() })({});
  },
  async fenced(made) {
    const { wake, call } = sleeper(made, 'a');
    await rest();
    const record = (await made.semel.records.list()).items[0]!;
    await made.semel.doubts.resolve(record.ref, { landed: 'seen' }, { force: true });
    wake.reject(new Error('woke up and failed'));
    await call;
  },
  async lateNews(made) {
    const { wake, call } = sleeper(made, 'a');
    await rest();
    const record = (await made.semel.records.list()).items[0]!;
    await made.semel.doubts.resolve(record.ref, 'notLanded', { force: true });
    wake.resolve('landed after all');
    await call;
  },
  async duplicate(made) {
    const { wake, call } = sleeper(made, 'a');
    await rest();
    made.clock.jump(3 * 3_600_000);
    const other = made
      .another()
      .tool({ ...base, identity: ['id'], run: () => 'second', verify: () => notLanded() });
    expect(await other({ id: 'a' })).toBe('second');
    wake.resolve('landed long ago');
    await call;
  },
  async contradiction(made) {
    const { wake, call } = sleeper(made, 'a');
    await rest();
    const record = (await made.semel.records.list()).items[0]!;
    await made.semel.doubts.resolve(record.ref, { abandon: 'customer left' }, { force: true });
    wake.resolve('landed after all');
    await call;
  },
  async leaseLost(made) {
    const { wake, call } = sleeper(made, 'a');
    await rest();
    const record = (await made.semel.records.list()).items[0]!;
    await made.semel.doubts.resolve(record.ref, { landed: 1 }, { force: true });
    await made.clock.advance(31_000);
    wake.resolve('x');
    await call;
  },
  async resolved(made) {
    await happen.doubt(made);
    const [record] = (await made.semel.doubts.list()).items;
    await made.semel.doubts.resolve(record!.ref, { landed: 1 });
  },
  async storeDown(made) {
    const tool = made.semel.tool({ ...base, run: () => 1 });
    made.store.break();
    await made.clock.until(tool.try({}));
  },
  async storeUp(made) {
    await happen.storeDown(made);
    made.store.repair();
    await made.semel.records.list();
  },
};

test.each(eventNames)('%s happens once, to listeners and on the diagnostics channel', async (name) => {
  const made = rig();
  const heard: unknown[] = [];
  const published: unknown[] = [];
  const another = made.another;
  made.semel.on(name, (event) => heard.push(event));
  // A worker that is woken up later is another process with a semel of its own.
  Object.assign(made, {
    another: (options?: object) => {
      const semel = another(options);
      semel.on(name, (event) => heard.push(event));
      return semel;
    },
  });
  const publish = (message: unknown) => published.push(message);
  subscribe(`semel:${name}`, publish);
  await happen[name](made);
  await rest();
  unsubscribe(`semel:${name}`, publish);
  expect(heard).toHaveLength(1);
  expect(published).toEqual(heard);
  if (name !== 'storeDown' && name !== 'storeUp')
    expect(heard[0]).toMatchObject({
      namespace: 'test',
      contract: 'post',
      key: expect.stringMatching(/^post\//),
    });
});

test('events say what they are about', async () => {
  const made = rig();
  const heard: Partial<{ [Name in EventName]: SemelEvents[Name] }> = {};
  for (const name of eventNames) made.semel.on(name, (event) => Object.assign(heard, { [name]: event }));
  await happen.resolved(made);
  expect(heard.claimed).toMatchObject({ attempt: 1, fence: 1 });
  expect(heard.settled).toMatchObject({ outcome: 'unknown' });
  expect(heard.doubt).toMatchObject({ error: 'reset' });
  expect(heard.resolved).toMatchObject({ act: 'landed' });
});

test('listeners that throw or reject disturb nothing, and others still hear it', async () => {
  const made = rig();
  const heard: string[] = [];
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(warning.message);
  process.on('warning', onWarning);
  made.semel.on('claimed', () => {
    throw new Error('mine\u001b[2J\u202e');
  });
  made.semel.on('claimed', (async () => {
    throw new Error('mine, later');
  }) as () => void);
  made.semel.on('claimed', ({ key }) => heard.push(key));
  const tool = made.semel.tool({ ...base, run: () => 'done' });
  expect(await tool({})).toBe('done');
  await rest();
  process.off('warning', onWarning);
  expect(heard).toHaveLength(1);
  const told = warnings.filter((message) => message.includes('"claimed" threw'));
  expect(told).toHaveLength(2);
  // Node.js prints a warning on the terminal.
  expect(told.join('')).toContain('mine\\u001b[2J\\u202e');
});

test('a listener that was taken away hears nothing more', async () => {
  const made = rig();
  const heard: string[] = [];
  const off = made.semel.on('claimed', ({ key }) => heard.push(key));
  const tool = made.semel.tool({ ...base, run: () => 'done' });
  await tool({ id: 1 });
  off();
  await tool({ id: 2 });
  expect(heard).toHaveLength(1);
});

describe('the audit of replays', () => {
  test('the first is there within a second, the others follow as one count a minute later', async () => {
    const { semel, store, clock } = rig();
    const key = 'mail.send/=order-17';
    const send = semel.tool({
      name: 'mail.send',
      effect: 'write-non-idempotent',
      per: 'ever',
      run: () => 'sent',
    });
    const replays = async () =>
      (await store.history('test', key))
        .filter(({ type }) => type === 'replayed')
        .map(({ detail }) => detail);
    const ask = (conversation: string) => send({}, { key: 'order-17', conversation });
    await ask('c-1');
    for (let n = 0; n < 3; n += 1) await ask('c-1');
    await clock.advance(1_000);
    expect(await replays()).toMatchObject([{ conversation: 'c-1', times: 3 }]);

    for (let n = 0; n < 500; n += 1) await ask('c-1');
    await ask('c-2');
    await clock.advance(1_000);
    expect(await replays()).toMatchObject([{ times: 3 }, { conversation: 'c-2' }]);
    await clock.advance(60_000);
    expect(await replays()).toMatchObject([{ times: 3 }, { conversation: 'c-2' }, { times: 500 }]);
  });

  test('reading the history shows them all at once', async () => {
    const { semel } = rig();
    const ask = () => semel.once('mail.send', { order: 17 }, () => 'sent');
    await ask();
    for (let n = 0; n < 4; n += 1) await ask();
    const { items } = await semel.records.list();
    const history = await semel.records.history(items[0]?.key ?? '');
    expect(history.map(({ type, detail }) => [type, detail.times])).toEqual([['replayed', 4]]);
  });
});
