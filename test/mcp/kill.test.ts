// The proxy is killed where it hurts: never two effects, and never a call that nobody knows of.

import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { eventually } from '../cli/place.ts';
import { errorOf, isKept, type ProxyPlace, proxyPlace, soon } from './proxy.ts';
import type { RawClient } from './raw-client.ts';

const terms = { effect: 'write-non-idempotent', ...soon };

function victim(): { here: ProxyPlace; client: RawClient; next: () => RawClient } {
  const here = proxyPlace();
  const file = here.policy(
    Object.fromEntries(['act', 'act-then-wait', 'wait-then-act'].map((name) => [name, terms])),
  );
  const next = () => here.client(['--policy', file]);
  return { here, client: next(), next };
}

/** Not until its pipes are closed: the server outlives it, and has them too. */
async function died({ child }: RawClient): Promise<void> {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGKILL');
  await gone;
  expect(child.signalCode).toBe('SIGKILL');
}

describe('SIGKILL', () => {
  test('after the claim, before the server acts: in doubt, and nothing landed', async () => {
    const { here, client, next } = victim();
    void client.call('wait-then-act', { n: 1 }).catch(() => undefined);
    await eventually(() => here.lines('arrived').length > 0);
    await died(client);
    // The gate stays closed: that server never acts.
    const again = await next().call('wait-then-act', { n: 1 });
    expect(errorOf(again)?.code).toBe('IN_DOUBT');
    expect(here.lines('arrived')).toHaveLength(1);
    expect(here.effects()).toEqual([]);
  });

  test('after the server acted, before it answers: in doubt, and one effect', async () => {
    const { here, client, next } = victim();
    void client.call('act-then-wait', { n: 1 }).catch(() => undefined);
    await eventually(() => here.effects().length > 0);
    await died(client);
    here.open();
    expect(errorOf(await next().call('act-then-wait', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
  });

  test('after the server answered, before that is read: in doubt, and one effect', async () => {
    const { here, client, next } = victim();
    void client.call('act-then-wait', { n: 1 }).catch(() => undefined);
    await eventually(() => here.effects().length > 0);
    // It stands still with the answer at its door.
    client.child.kill('SIGSTOP');
    here.open();
    await eventually(() => here.lines('answered').length > 0);
    await died(client);
    expect(errorOf(await next().call('act-then-wait', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
  });

  test('after it read the answer, before it is recorded: in doubt, and one effect', async () => {
    const { here, client, next } = victim();
    void client.call('act-then-wait', { n: 1 }).catch(() => undefined);
    await eventually(() => here.effects().length > 0);
    // The ledger is held by another writer: the answer is read, and cannot be written down.
    const holder = new DatabaseSync(here.path('ledger.db'));
    holder.exec('BEGIN IMMEDIATE');
    here.open();
    await eventually(() => here.lines('answered').length > 0);
    expect(client.stdout()).toBe('');
    await died(client);
    holder.exec('ROLLBACK');
    holder.close();
    expect(errorOf(await next().call('act-then-wait', { n: 1 }))?.code).toBe('IN_DOUBT');
    expect(here.effects()).toHaveLength(1);
  });

  test('after it is recorded, before the client hears of it: the next one gets the answer', async () => {
    const { here, client, next } = victim();
    client.child.stdout?.pause();
    void client.call('act', { n: 1 }).catch(() => undefined);
    await eventually(() => here.effects().length > 0);
    await eventually(async () => (await here.semel('ls', '--json')).stdout.includes('"succeeded"'));
    await died(client);
    const again = await next().call('act', { n: 1 });
    expect(isKept(again)).toBe(true);
    expect(again.result?.structuredContent).toEqual({ n: 1, of: { n: 1 } });
    expect(here.effects()).toHaveLength(1);
  });

  test('a person decides, and the call continues from there', async () => {
    const { here, client, next } = victim();
    void client.call('act-then-wait', { n: 1 }).catch(() => undefined);
    await eventually(() => here.effects().length > 0);
    await died(client);
    here.open();
    const other = next();
    expect(errorOf(await other.call('act-then-wait', { n: 1 }))?.code).toBe('IN_DOUBT');
    const [doubt] = (await here.json('doubt')) as { ref: string }[];
    const result = JSON.stringify({ content: [{ type: 'text', text: 'seen in the outbox' }] });
    expect((await here.semel('resolve', doubt?.ref as string, 'landed', '--result', result)).code).toBe(0);
    const answer = await next().call('act-then-wait', { n: 1 });
    expect(answer.result?.content?.at(-1)?.text).toBe('seen in the outbox');
    expect(isKept(answer)).toBe(true);
    expect(here.effects()).toHaveLength(1);
  });

  test('at any moment, many times: at most one effect each, and "done" is always true', async () => {
    const { here, client, next } = victim();
    await died(client);
    const kills = 12;
    await Promise.all(
      [0, 1, 2].map(async (lane) => {
        for (let n = lane; n < kills; n += 3) {
          const doomed = next();
          void doomed.call('act', { n }).catch(() => undefined);
          await new Promise((resolve) => setTimeout(resolve, 150 + ((n * 37) % 300)));
          await died(doomed);
        }
      }),
    );
    const after = next();
    for (let n = 0; n < kills; n += 1) {
      const answer = await after.call('act', { n });
      const landed = here.effects().filter((line) => line === `{"n":${n}}`).length;
      expect(landed).toBeLessThanOrEqual(1);
      // Other calls came after it: a repeat of what was done is asked about, since it may be meant.
      const isAsked = answer.result?._meta?.['dev.semel/question'] !== undefined;
      if (answer.result?.isError === true && !isAsked) expect(errorOf(answer)?.code).toBe('IN_DOUBT');
      else expect(landed).toBe(1);
    }
  });
});
