import { createSemel, day, isSemelError, landed, notLanded, oneRequest } from 'semel';
import { describe, expect, test } from 'vitest';
import { quick, rig, target } from './support.ts';

const quiet = { store: 'memory:', namespace: 'test', onWarning: () => undefined };

test('the second call replays the value of the first and runs nothing', async () => {
  await using semel = createSemel(quiet);
  let sent = 0;
  const send = () =>
    semel.once('email.send', { lead: 7, template: 'welcome' }, ({ key }) => ({ id: ++sent, key }));
  const first = await send();
  const second = await send();
  expect(second).toEqual(first);
  expect(sent).toBe(1);
});

test('another id is another intent', async () => {
  await using semel = createSemel(quiet);
  let sent = 0;
  for (const lead of [1, 2, 1]) await semel.once('email.send', { lead }, () => ++sent);
  expect(sent).toBe(2);
});

test('a period bounds the intent', async () => {
  await using semel = createSemel(quiet);
  let sent = 0;
  const send = (at: string) =>
    semel.once('digest', { list: 'all' }, { per: day('Europe/Paris'), at: new Date(at) }, () => ++sent);
  await send('2026-06-19T08:00:00Z');
  await send('2026-06-19T20:00:00Z');
  await send('2026-06-19T22:30:00Z');
  expect(sent).toBe(2);
});

test('fifty calls at once run the effect once and all get the value', async () => {
  await using semel = createSemel(quiet);
  let sent = 0;
  const values = await Promise.all(
    Array.from({ length: 50 }, () =>
      semel.once('email.send', { lead: 1 }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return { n: ++sent };
      }),
    ),
  );
  expect(sent).toBe(1);
  expect(new Set(values.map((value) => value.n))).toEqual(new Set([1]));
});

test('an error after the line is in doubt, and is neither repeated nor forgotten', async () => {
  await using semel = createSemel(quiet);
  let sent = 0;
  const send = () =>
    semel.once('email.send', { lead: 1 }, () => {
      sent += 1;
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    });
  await expect(send()).rejects.toSatisfy((error) => isSemelError(error, 'IN_DOUBT'));
  await expect(send()).rejects.toThrow(
    /ECONNRESET: socket hang up\. It may have landed.*With `verify` or `provider` in its options/,
  );
  expect(sent).toBe(1);
  const { items } = await semel.doubts.list();
  expect(items).toHaveLength(1);
  await semel.doubts.resolve(
    items[0]!.ref,
    { landed: { id: 'm-1' } },
    { by: 'ann', note: 'seen in the outbox' },
  );
  await expect(semel.once('email.send', { lead: 1 }, () => 'never')).resolves.toEqual({ id: 'm-1' });
});

test('a doubt advises only what `once` takes', async () => {
  await using semel = createSemel(quiet);
  const bug = semel.once('email.send', { lead: 2 }, () => {
    throw new TypeError('lead is undefined');
  });
  await expect(bug).rejects.toThrow(
    /before anything was sent: throw NotLanded there\. More: npx semel explain/,
  );
  const run = (): never => {
    throw new TypeError('lead is undefined');
  };
  const tool = semel.tool({ name: 'mail', effect: 'irreversible', per: 'ever', run });
  await expect(tool({})).rejects.toThrow(/throw NotLanded there, or use dispatch: 'explicit'\./);
});

test('a name per id is warned about once, and does not fill the memory', async () => {
  const warnings: string[] = [];
  const semel = quick({ onWarning: (message) => warnings.push(message) });
  let ran = 0;
  for (let id = 0; id < 1_100; id += 1) await semel.once(`welcome-${id}`, 1, () => ++ran);
  expect(warnings.filter((each) => each.includes('second argument'))).toHaveLength(1);
  expect(await semel.once('welcome-0', 1, () => ++ran)).toBe(1);
  expect(ran).toBe(1_100);
});

describe('the terms of a tool', () => {
  test('classify: what an error means', async () => {
    await using semel = createSemel(quiet);
    let calls = 0;
    const send = (classify: object) =>
      semel.once('sms', 7, { classify } as never, () => {
        calls += 1;
        throw Object.assign(new Error('no'), { status: 429, code: 'ELIMIT' });
      });
    await expect(send(oneRequest)).rejects.toMatchObject({ code: 'NOT_LANDED' });
    await expect(send({ ELIMIT: 'rejected' })).rejects.toMatchObject({ code: 'FAILED' });
    expect(calls).toBe(2);
    await expect(semel.once('sms.b', 7, { classify: 'no' as never }, () => 1)).rejects.toMatchObject({
      code: 'CONTRACT_INVALID',
      path: 'classify',
    });
  });

  test('verify: settles what an earlier call left in doubt, each call with its own closure', async () => {
    const { semel, clock } = rig();
    const outbox = new Set<string>();
    let sent = 0;
    const send = (lead: string) =>
      semel.once(
        'mail',
        { lead },
        { verify: ({ lead: id }) => (outbox.has(id) ? landed(`found ${lead}`) : notLanded()) },
        () => {
          sent += 1;
          if (lead === 'ann') outbox.add(lead);
          if (sent <= 2) throw new Error('socket hang up');
          return `sent ${lead}`;
        },
      );
    for (const lead of ['ann', 'bob']) await send(lead).catch(() => undefined);
    await clock.advance(11 * 60_000);
    expect(await send('ann')).toBe('found ann');
    expect(await send('bob')).toBe('sent bob');
    expect(sent).toBe(3);
  });

  test('provider: the second call sends the same key again', async () => {
    const keys: string[] = [];
    const server = await target((request, response) => {
      keys.push(String(request.headers['idempotency-key']));
      if (keys.length === 1) request.socket.destroy();
      else response.end('"ok"');
    });
    await using semel = createSemel(quiet);
    const provider = { name: 'pay', window: '30d', hosts: [server.host] } as const;
    const charge = () =>
      semel.once('charge', 'o-1', { provider }, async (ctx) => {
        await ctx.fetch(server.url, { method: 'POST' });
        return 'ok';
      });
    await expect(charge()).rejects.toMatchObject({ code: 'IN_DOUBT' });
    expect(await charge()).toBe('ok');
    expect(new Set(keys).size).toBe(1);
  });

  test('provider: another one under the same name has its own functions', async () => {
    await using semel = createSemel(quiet);
    const fails = (meaning: 'rejected' | 'maybeLanded') => {
      const provider = { name: 'pay', window: '30d', classify: () => meaning } as const;
      return semel.once('charge', meaning, { provider }, () => Promise.reject(new Error('no')));
    };
    await expect(fails('maybeLanded')).rejects.toMatchObject({ code: 'IN_DOUBT' });
    await expect(fails('rejected')).rejects.toMatchObject({ code: 'FAILED' });
  });

  test('content: may be worded differently, but not with a key that a provider honours', async () => {
    await using semel = createSemel(quiet);
    let sent = 0;
    const send = (body: string, more: object = {}) =>
      semel.once('mail', { lead: 1, body }, { content: ['body'], ...more }, () => ++sent);
    expect([await send('Hello'), await send('Good morning')]).toEqual([1, 1]);
    const provider = { name: 'mail', window: '30d' } as const;
    await expect(
      semel.once('mail.b', { lead: 1, body: '' }, { content: ['body'], provider }, () => 1),
    ).rejects.toMatchObject({ code: 'CONTRACT_INVALID', path: 'content' });
  });

  test('verify has the type of the id and of the value', () => {
    const check = () =>
      quick().once(
        'mail',
        { lead: 1 },
        // @ts-expect-error: the effect returns a number
        { verify: ({ lead }) => landed(`found ${lead.toFixed()}`) },
        () => 1,
      );
    expect(check).toBeTypeOf('function');
  });
});
