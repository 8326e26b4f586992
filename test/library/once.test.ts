import { createSemel, day, isSemelError } from 'semel';
import { expect, test } from 'vitest';
import { quick } from './support.ts';

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
  await expect(send()).rejects.toThrow(/may have landed \(ECONNRESET: socket hang up\)/);
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

test('a name per id is warned about once, and does not fill the memory', async () => {
  const warnings: string[] = [];
  const semel = quick({ onWarning: (message) => warnings.push(message) });
  let ran = 0;
  for (let id = 0; id < 1_100; id += 1) await semel.once(`welcome-${id}`, 1, () => ++ran);
  expect(warnings.filter((each) => each.includes('second argument'))).toHaveLength(1);
  expect(await semel.once('welcome-0', 1, () => ++ran)).toBe(1);
  expect(ran).toBe(1_100);
});
