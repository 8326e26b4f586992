// What a model is told where the ledger, and not the tool, is the reason; in every framework.
import { expect, test } from 'vitest';
import { errorCodes, SemelError } from '../../src/core/errors.ts';
import { createGuard, errorForModel } from '../../src/guard/index.ts';
import { rest, rig } from '../library/support.ts';

const terms = { effect: 'write-non-idempotent', per: 'ever' } as const;

test('what is done and could not be recorded is a value, and not to be done again', async () => {
  const { semel, store, clock } = rig();
  const mail = createGuard(semel, 'mail', terms)!;
  await semel.open();
  store.break('settle');
  expect(await clock.until(mail.call({ args: {} }, () => 'sent'))).toMatchObject({
    ok: true,
    value: 'sent',
    note: 'It is done, but that could not be recorded. Do not do it again.',
  });
});

test('of an unreachable store: neither its address nor its error', async () => {
  const { semel, store, clock } = rig();
  const mail = createGuard(semel, 'mail', terms)!;
  await semel.open();
  store.claim = async () => {
    throw new Error('connect ECONNREFUSED postgres://ann:secret@db.example');
  };
  const told = await clock.until(mail.call({ args: {} }, () => 'sent'));
  expect(told).toMatchObject({
    ok: false,
    error: { code: 'STORE_UNAVAILABLE', message: 'The ledger of what was done cannot be used right now.' },
  });
  expect(JSON.stringify(told)).not.toMatch(/secret|db\.example/);
});

test('a call that was skipped because one is running is not reported as done', async () => {
  const { semel } = rig();
  const mail = createGuard(semel, 'mail', { ...terms, ifBusy: 'skip' })!;
  const { promise, resolve } = Promise.withResolvers();
  const first = mail.call({ args: {} }, () => promise);
  await rest();
  expect(await mail.call({ args: {} }, () => 'sent')).toMatchObject({
    ok: true,
    value: undefined,
    note: 'The same call is already running; nothing was started again.',
  });
  resolve('sent');
  expect(await first).toMatchObject({ ok: true, value: 'sent', note: undefined });
});

test('only of what certainly did not happen a model hears that it may be made again', () => {
  const saysSo = errorCodes.filter((code) =>
    /may be made again/.test(errorForModel(new SemelError(code, 'So it is.')).correctiveAction),
  );
  expect(saysSo).toEqual(['IN_FLIGHT', 'NOT_LANDED', 'STORE_UNAVAILABLE']);
});
