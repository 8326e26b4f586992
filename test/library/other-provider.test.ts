// A contract whose `provider` was replaced between two deployments: what was sent to the first service is not known to the second
// one, so its key makes no repeat harmless there, and a `verify` that looks there cannot say that nothing landed.

import { landed, notLanded, type Provider, type SemelError, type Verification } from 'semel';
import { describe, expect, test } from 'vitest';
import { rig } from './support.ts';

const refund = { name: 'refund', effect: 'write-non-idempotent', per: 'ever' } as const;
const first: Provider = { name: 'psp-a', window: '30d', sentBy: 'tool' };
const second: Provider = { ...first, name: 'psp-b' };

type More = Readonly<{ provider?: Provider; verify?: () => Verification<string> }>;

/** The first deployment sent a refund, and its answer was lost. */
async function deployments(before: More) {
  const made = rig();
  const sent: string[] = [];
  const define = (more: More, isLost: boolean, semel = made.semel) =>
    semel.tool({
      ...refund,
      ...more,
      run({ id }: { id: number }, { key }): string {
        sent.push(`${more.provider?.name} ${key}`);
        if (isLost) throw new Error('socket hang up');
        return `refunded ${id}`;
      },
    });
  const old = await define(before, true).try({ id: 1 });
  expect(old).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
  await made.clock.advance(30 * 60_000);
  const semel = made.another();
  const deploy = (more: More, isLost = false) => define(more, isLost, semel);
  return { semel, sent, deploy, clock: made.clock };
}

const codeOf = (result: { ok: boolean; error?: SemelError }) => (result.ok ? 'done' : result.error?.code);

describe('what was sent to another provider', () => {
  test('is not sent to the present one', async () => {
    const { semel, sent, deploy } = await deployments({ provider: first });
    const tool = deploy({ provider: second });
    expect(codeOf(await tool.try({ id: 1 }))).toBe('IN_DOUBT');
    expect(await semel.doubts.sweep()).toEqual({ landed: 0, notLanded: 0, open: 1 });
    expect(sent).toHaveLength(1);
  });

  test('is not sent where the same provider gets another form of the key, or gets it elsewhere', async () => {
    for (const other of [
      { ...first, format: (key: string) => key.replaceAll('-', '') },
      { ...first, sentBy: 'fetch', header: 'X-Request-Id', hosts: ['psp.invalid'] },
      { ...first, sentBy: 'fetch', bodyField: 'key', hosts: ['psp.invalid'] },
    ] as const) {
      const { sent, deploy } = await deployments({ provider: first });
      expect(codeOf(await deploy({ provider: other }).try({ id: 1 }))).toBe('IN_DOUBT');
      expect(sent).toHaveLength(1);
    }
  });

  test('is sent again where it is the same provider, however it is written', async () => {
    const { sent, deploy } = await deployments({ provider: first });
    const same = { window: '60d', name: 'psp-a', sentBy: 'tool', hosts: ['psp-a.invalid'] } as const;
    expect(codeOf(await deploy({ provider: same }).try({ id: 1 }))).toBe('done');
    expect(sent).toHaveLength(2);
    expect(new Set(sent).size).toBe(1);
  });

  test.each([[{ provider: second }], [{}]])(
    'is not taken for "not landed" because `verify` does not find it: now with %o',
    async (now) => {
      const { sent, deploy } = await deployments({ provider: first, verify: () => notLanded() });
      const result = await deploy({ ...now, verify: () => notLanded() }).try({ id: 1 });
      expect(result).toMatchObject({ error: { code: 'IN_DOUBT' } });
      expect(String((result as { error?: SemelError }).error?.message)).toContain("contract's earlier");
      expect(sent).toHaveLength(1);
    },
  );

  test('counts as landed where `verify` finds it', async () => {
    const { sent, deploy } = await deployments({ provider: first });
    const result = await deploy({ provider: second, verify: () => landed('found') }).try({ id: 1 });
    expect(result).toMatchObject({ ok: true, value: 'found' });
    expect(sent).toHaveLength(1);
  });

  test('is sent to the present one once a person said that it did not land, whose key then counts', async () => {
    const { semel, sent, deploy } = await deployments({ provider: first });
    const [record] = (await semel.doubts.list()).items;
    expect(record?.version).toBe('1');
    await semel.doubts.resolve(record?.ref as string, 'notLanded', { by: 'ann' });
    expect(codeOf(await deploy({ provider: second }, true).try({ id: 1 }))).toBe('IN_DOUBT');
    expect(codeOf(await deploy({ provider: { ...second } }).try({ id: 1 }))).toBe('done');
    const keys = sent.map((line) => line.split(' ')[1]);
    expect(keys[1]).not.toBe(keys[0]);
    expect(keys[2]).toBe(keys[1]);
  });
});

test('a provider that is added to a contract leaves what was sent without one to `verify`', async () => {
  const { sent, deploy } = await deployments({});
  expect(codeOf(await deploy({ provider: first, verify: () => notLanded() }).try({ id: 1 }))).toBe('done');
  expect(sent).toHaveLength(2);
});

test('a step whose provider was replaced is not sent to the present one', async () => {
  const made = rig();
  let sent = 0;
  const define = (provider: Provider, isLost: boolean, semel = made.semel) =>
    semel.tool({
      ...refund,
      via: 'steps',
      run: (_: { id: number }, ctx) =>
        ctx.step('charge', { provider }, ({ key: _ }) => {
          sent += 1;
          if (isLost) throw new Error('socket hang up');
          return 'charged';
        }),
    });
  expect(codeOf(await define(first, true).try({ id: 1 }))).toBe('IN_DOUBT');
  expect(codeOf(await define(second, false, made.another()).try({ id: 1 }))).toBe('IN_DOUBT');
  expect(sent).toBe(1);
  expect(codeOf(await define(first, false, made.another()).try({ id: 1 }))).toBe('done');
});

test('a format that throws for a made-up key is told where it is used', async () => {
  const { semel } = rig();
  const format = (): string => {
    throw new Error('not this one');
  };
  expect(() => semel.tool({ ...refund, provider: { ...first, format }, run: () => 1 })).not.toThrow();
});
