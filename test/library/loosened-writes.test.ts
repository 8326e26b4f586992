// A tool that was remembered and is `write-idempotent` by now: no outcome of its earlier contract is told as that of a new write.

import { landed, NotLanded, Rejected } from 'semel';
import { expect, test } from 'vitest';
import { gate, rest, rig } from './support.ts';

interface Light {
  readonly id: number;
  readonly to: string;
}

const base = { name: 'light.set', effect: 'write-idempotent', identity: ['id'], lease: '30s' } as const;

const kinds = {
  'a plain write': {},
  'a prepared write': { prepare: ({ to }: Light) => ({ to }) },
  'a write with a key of the provider': {
    provider: { name: 'ann.lights', window: '24h', hosts: ['lights.example'] },
  },
  'a prepared write with a key of the provider': {
    prepare: ({ to }: Light) => ({ to }),
    provider: { name: 'ann.lights', window: '24h', hosts: ['lights.example'] },
  },
} as const;

const before = { ...base, effect: 'irreversible', per: 'ever' } as const;

test.each(Object.entries({ ...kinds, 'a verified write': { verify: ({ to }: Light) => landed(to) } }))(
  '%s: is not told as done because another effect of its earlier contract is',
  async (_, kind) => {
    const made = rig();
    const sent: string[] = [];
    const run = ({ to }: Light, ctx: { prepared: unknown }) => {
      sent.push((ctx.prepared as { to: string } | undefined)?.to ?? to);
      return sent.length === 1 ? new Promise<string>(() => undefined) : to;
    };
    const strict = { ...before, ...kind, per: 'turn', window: '1h', run } as const;
    const turn = { conversation: 'c', turn: 't' };
    made.another().within(turn, () => void made.another().tool(strict).try({ id: 1, to: 'on' }));
    await rest();
    made.store.break('renew');
    await made.clock.advance(31_000);
    made.store.repair();
    const set = made.semel.tool({ ...base, ...kind, per: 'turn', run });
    const off = made.semel.within(turn, () => set.try({ id: 1, to: 'off' }));
    // Whether `on` landed is an open question, and what settles it would not switch the light off.
    expect(await made.clock.until(off)).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    expect(sent).toEqual(['on']);
    const [open] = (await made.semel.records.list({ inDoubt: true })).items;
    await made.semel.doubts.resolve(open!.ref, 'runAgain', { by: 'ann' });
    const again = made.semel.within(turn, () => set.try({ id: 1, to: 'off' }));
    expect(await made.clock.until(again)).toMatchObject({ ok: true, value: 'off' });
    expect(sent).toEqual(['on', 'off']);
  },
);

test.each(Object.entries(kinds))(
  '%s: writes what was asked for after one of its earlier contract that did not land',
  async (_, kind) => {
    const made = rig();
    const sent: string[] = [];
    const run = ({ to }: Light, ctx: { prepared: unknown }) => {
      sent.push((ctx.prepared as { to: string } | undefined)?.to ?? to);
      if (sent.length === 1) throw new NotLanded('the lamp is locked');
      return sent.at(-1) as string;
    };
    const turn = { conversation: 'c', turn: 't' };
    const strict = made.another().tool({ ...before, ...kind, per: 'turn', window: '1h', run });
    await made.semel.within(turn, () => strict.try({ id: 1, to: 'on' }));
    const set = made.semel.tool({ ...base, ...kind, per: 'turn', run });
    const off = await made.semel.within(turn, () => set.try({ id: 1, to: 'off' }));
    expect(off).toMatchObject({ ok: true, value: 'off' });
    expect(sent).toEqual(['on', 'off']);
  },
);

test('that failed after an accepted repeat is not told as done because `verify` finds the effect of its earlier contract', async () => {
  const made = rig();
  const turn = { conversation: 'c', turn: 't' };
  // Finds the lamp on, whatever is asked.
  const verify = () => landed('on');
  const hang = () => new Promise<string>(() => undefined);
  const strict = { ...before, per: 'turn', window: '1h', run: hang } as const;
  made.another().within(turn, () => void made.another().tool(strict).try({ id: 1, to: 'on' }));
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  made.store.repair();
  const locked = (_: Light): string => {
    throw new NotLanded('the lamp is locked');
  };
  const set = made.semel.tool({ ...base, per: 'turn', run: locked, verify });
  const off = () => made.semel.within(turn, () => set.try({ id: 1, to: 'off' }));
  await made.clock.until(off());
  const [open] = (await made.semel.records.list({ inDoubt: true })).items;
  await made.semel.doubts.resolve(open!.ref, 'runAgain', { by: 'ann' });
  const again = await made.clock.until(off());
  expect(again).toMatchObject({ ok: false });
  expect(JSON.stringify(again)).toContain('the lamp is locked');
});

test('is written although its earlier contract remembers a refusal', async () => {
  const made = rig();
  const refuse = () => {
    throw new Rejected('the lamp is locked');
  };
  const refused = await made
    .another()
    .tool({ ...before, run: refuse })
    .try({ id: 1, to: 'on' });
  expect(refused).toMatchObject({ error: { code: 'FAILED' } });
  const set = made.semel.tool({ ...base, run: ({ to }: Light) => to });
  expect(await set.try({ id: 1, to: 'off' })).toMatchObject({ ok: true, value: 'off' });
});

test('is not reported as done by the late success of another write, after one that did not land', async () => {
  const made = rig();
  const first = gate<string>();
  const second = gate<string>();
  const states: string[] = [];
  const write = (ending: Promise<string>) => (args: Light) => {
    states.push(args.to);
    return ending;
  };
  const notLanding = () => {
    throw new NotLanded('the lamp is locked');
  };
  await made
    .another()
    .tool({ ...before, run: notLanding })
    .try({ id: 1, to: 'dim' });
  const slow = made
    .another()
    .tool({ ...base, run: write(first.promise) })
    .try({ id: 1, to: 'off' });
  await rest();
  made.store.break('renew');
  await made.clock.advance(31_000);
  made.store.repair();
  const next = made.semel.tool({ ...base, run: write(second.promise) }).try({ id: 1, to: 'on' });
  await made.clock.advance(10);
  expect(states).toEqual(['off', 'on']);
  first.resolve('off');
  await made.clock.until(slow);
  second.reject(new Error('socket hang up'));
  expect(await made.clock.until(next)).toMatchObject({ ok: false });
});

test.each(['a plain write', 'a prepared write'] as const)(
  '%s that failed is not reported as done by the late success of a run that a person allowed',
  async (kind) => {
    const made = rig();
    const late = gate();
    const strict = made.another().tool({
      ...before,
      ...kinds[kind],
      timeout: '10s',
      run: ({ to }: Light) => late.promise.then(() => `strictly ${to}`),
    });
    void strict.try({ id: 1, to: 'on' });
    await made.clock.advance(30_000);
    const [open] = (await made.semel.records.list({ inDoubt: true })).items;
    await made.semel.doubts.resolve(open!.ref, 'runAgain', { by: 'ann' });
    const fails = gate();
    const set = made.semel.tool({
      ...base,
      ...kinds[kind],
      per: 'ever',
      run: async (_: Light) => {
        await fails.promise;
        throw new Error('the lamp is locked');
      },
    });
    const off = set.try({ id: 1, to: 'off' });
    await made.clock.advance(1_000);
    late.resolve();
    await made.clock.advance(1_000);
    fails.resolve();
    expect(await made.clock.until(off)).toMatchObject({
      ok: false,
      error: { code: 'FAILED', retriable: true, message: expect.stringContaining('the lamp is locked') },
    });
    // The open question itself is settled.
    expect((await made.semel.records.list({ inDoubt: true })).items).toEqual([]);
  },
);
