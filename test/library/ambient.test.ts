// Identity without passing it along, and across processes.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { quick } from './support.ts';

const perTurn = { name: 'post', effect: 'write-non-idempotent', per: 'turn' } as const;

async function keyOf(semel = quick()): Promise<string> {
  const tool = semel.tool({ ...perTurn, run: () => 1 });
  const result = await tool.try({});
  if (!result.ok) throw result.error;
  return result.receipt.key;
}

describe('within', () => {
  test('calls inside need no options, after any number of awaits', async () => {
    const semel = quick();
    const key = await semel.within({ conversation: 'c', turn: '1' }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return keyOf(semel);
    });
    const tool = semel.tool({ ...perTurn, run: () => 1 });
    expect((await tool.try({}, { conversation: 'c', turn: '1' })).receipt.key).toBe(key);
  });

  test('it gives back what the work gives, also synchronously', () => {
    const semel = quick();
    expect(semel.within({ conversation: 'c' }, () => 7)).toBe(7);
    expect(() =>
      semel.within({ conversation: 'c' }, () => {
        throw new Error('mine');
      }),
    ).toThrow('mine');
  });

  test('contexts that run at once do not mix', async () => {
    const semel = quick();
    const keys = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        semel.within({ conversation: `c${n % 5}`, turn: String(n % 2) }, async () => {
          await new Promise((resolve) => setTimeout(resolve, (n * 7) % 10));
          return keyOf(semel);
        }),
      ),
    );
    expect(new Set(keys).size).toBe(10);
  });

  test('inner identity is added to the outer; a new conversation inherits no turn', async () => {
    const semel = quick();
    const both = await semel.within({ conversation: 'c' }, () =>
      semel.within({ turn: '1' }, () => keyOf(semel)),
    );
    expect(both).toBe(await semel.within({ conversation: 'c', turn: '1' }, () => keyOf(semel)));
    await semel.within({ conversation: 'c', turn: '1' }, async () => {
      await expect(semel.within({ conversation: 'd' }, () => keyOf(semel))).rejects.toMatchObject({
        code: 'NO_IDENTITY',
        path: 'turn',
      });
      expect(await semel.within({ conversation: 'c' }, () => keyOf(semel))).toBe(both);
    });
  });

  test('what is spelt out as undefined takes nothing away', async () => {
    const semel = quick();
    await semel.within({ conversation: 'c', turn: '1' }, () =>
      semel.within({ run: 'r', turn: undefined } as never, () => keyOf(semel)),
    );
  });

  test('options of the call come before what is around it', async () => {
    const semel = quick();
    const tool = semel.tool({ ...perTurn, run: () => 1 });
    const [a, b] = await semel.within({ conversation: 'c', turn: '1' }, () =>
      Promise.all([tool.try({}), tool.try({}, { turn: '2' })]),
    );
    expect(a.receipt.key).not.toBe(b.receipt.key);
  });

  test('permissions can be granted for what runs inside', async () => {
    const semel = quick({ permissions: ['a'] });
    const tool = semel.tool({ ...perTurn, per: 'ever', permissions: ['a', 'b', 'c'], run: () => 1 });
    await semel.within({ permissions: ['b'] }, async () => {
      expect(await tool.try({})).toMatchObject({ error: { code: 'NOT_PERMITTED' } });
      expect(await tool({}, { permissions: ['c'] })).toBe(1);
    });
  });

  test('the scheduled instant decides the calendar period, not the one of a late start', async () => {
    const semel = quick();
    const tool = semel.tool({ ...perTurn, per: { unit: 'day', zone: 'UTC' }, run: () => 1 });
    const { receipt } = await semel.within({ at: new Date('2026-06-19T23:59:00Z') }, () => tool.try({}));
    expect(receipt.key).toContain('/2026-06-19/');
  });
});

describe('handoff', () => {
  const all = { conversation: 'cönv', turn: '1', run: 'r', at: new Date('2026-06-19T09:02:00Z') };

  test('two deliveries of one task have one identity', async () => {
    const sender = quick();
    const handoff = sender.within(all, () => sender.handoff());
    const receiver = quick();
    const keys = await Promise.all([1, 2].map(() => receiver.within(handoff, () => keyOf(receiver))));
    expect(new Set([...keys, await sender.within(all, () => keyOf(sender))]).size).toBe(1);
  });

  test('it is short, opaque, of one version, and carries no permissions', () => {
    const semel = quick();
    const handoff = semel.within({ ...all, permissions: ['refund'] }, () => semel.handoff());
    expect(handoff).toMatch(/^semel1\.[\w-]+\.[0-9a-z]{10}$/);
    expect(handoff.length).toBeLessThan(120);
    expect(Buffer.from(handoff.split('.')[1]!, 'base64url').toString()).not.toContain('refund');
  });

  test('adopted, it can be handed on', () => {
    const semel = quick();
    const handoff = semel.within(all, () => semel.handoff());
    expect(semel.within(handoff, () => semel.handoff())).toBe(handoff);
  });

  test('a guessed turn stays guessed', async () => {
    const semel = quick();
    const handoff = semel.within({ conversation: 'c', turn: 'hash', weak: true }, () => semel.handoff());
    const deploy = semel.tool({ ...perTurn, effect: 'irreversible', run: () => 1 });
    expect(await semel.within(handoff, () => deploy.try({}))).toMatchObject({
      error: { code: 'NO_IDENTITY' },
    });
  });

  test('without an identity there is nothing to hand off', () => {
    expect(() => quick().handoff()).toThrow(expect.objectContaining({ code: 'NO_IDENTITY' }));
  });

  test('a damaged one is refused, whichever character is wrong', () => {
    const semel = quick();
    const handoff = semel.within(all, () => semel.handoff());
    for (let at = 0; at < handoff.length; at += 1) {
      const wrong = handoff.slice(0, at) + (handoff[at] === 'x' ? 'y' : 'x') + handoff.slice(at + 1);
      expect(() => semel.within(wrong, () => 1), wrong).toThrow(
        expect.objectContaining({ code: 'NO_IDENTITY' }),
      );
      expect(() => semel.within(handoff.slice(0, at), () => 1)).toThrow(
        expect.objectContaining({ code: 'NO_IDENTITY' }),
      );
    }
    for (const wrong of ['', 'semel', 'semel2.abc.def', 'hello', 'semel1..', 'semel1.bnVsbA.x'])
      expect(() => semel.within(wrong, () => 1)).toThrow(/unchanged/);
  });

  test('it crosses processes', async () => {
    const semel = quick();
    const handoff = semel.within(all, () => semel.handoff());
    const script = `
      import { createSemel } from ${JSON.stringify(fileURLToPath(new URL('../../src/index.ts', import.meta.url)))};
      const semel = createSemel({ store: 'memory:', namespace: 'test', onWarning: () => undefined });
      const tool = semel.tool({ name: 'post', effect: 'write-non-idempotent', per: 'turn', run: () => 1 });
      console.log((await semel.within(process.argv[1], () => tool.try({}))).receipt.key);
    `;
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--input-type=module',
      '-e',
      script,
      handoff,
    ]);
    expect(stdout.trim()).toBe(await semel.within(all, () => keyOf(semel)));
  });
});
