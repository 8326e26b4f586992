// On a store over a wire, a tool that is mostly asked again is read before it is claimed: one read instead of a write that
// would lose.

import { createSemel } from 'semel';
import { type MemoryStoreOptions, memoryStore } from 'semel/memory';
import type { Store } from 'semel/store';
import { expect, test } from 'vitest';
import { gate, rest } from './support.ts';

type Look = NonNullable<Store['claim']['look']>;

/** A store that has to be waited for; `look` is what its looks do. */
function remote(options: MemoryStoreOptions = {}) {
  const store = memoryStore(options);
  const asked = { looks: 0, claims: 0 };
  let look: Look = async (asking) => store.claim.glance?.(asking);
  const claim: Store['claim'] = Object.assign(
    (request: Parameters<Store['claim']>[0]) => {
      asked.claims += 1;
      return store.claim(request);
    },
    {
      look: (asking: Parameters<Look>[0]) => {
        asked.looks += 1;
        return look(asking);
      },
    },
  );
  return {
    store: { ...store, claim } satisfies Store,
    asked,
    lookBy: (other: Look) => {
      look = other;
    },
  };
}

/** A tool that this process knows to be mostly asked again. */
async function askedAgain(made: ReturnType<typeof remote>) {
  const semel = createSemel({
    store: made.store,
    namespace: 'shop',
    cache: false,
    onWarning: () => undefined,
  });
  let ran = 0;
  const send = semel.tool({
    name: 'mail.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: async (_args: { id: number }) => {
      ran += 1;
      return ran;
    },
  });
  await send({ id: 1 });
  for (let again = 0; again < 3; again += 1) await send({ id: 1 });
  made.asked.claims = 0;
  made.asked.looks = 0;
  return { semel, send, ran: () => ran };
}

test('a replay costs one look and no claim, and says that it is one', async () => {
  const made = remote();
  const { send } = await askedAgain(made);
  const result = await send.try({ id: 1 });
  expect(result).toMatchObject({ ok: true, value: 1, receipt: { replayed: true, executed: false } });
  expect(made.asked).toEqual({ looks: 1, claims: 0 });
});

test('what is new is claimed after the look, and run once however many ask at once', async () => {
  const made = remote();
  const { send, ran } = await askedAgain(made);
  expect(await Promise.all([send({ id: 2 }), send({ id: 2 }), send({ id: 2 })])).toEqual([2, 2, 2]);
  expect(ran()).toBe(2);
  expect(made.asked).toEqual({ looks: 3, claims: 1 });
});

test('a tool with mostly new calls does not glance first', async () => {
  const made = remote();
  const { send } = await askedAgain(made);
  for (let id = 10; id < 30; id += 1) await send({ id });
  made.asked.looks = 0;
  await send({ id: 30 });
  expect(made.asked.looks).toBe(0);
});

test('if the glance fails, the claim reports the error or does the work', async () => {
  const made = remote();
  const { send } = await askedAgain(made);
  made.lookBy(async () => {
    throw new TypeError('looks are broken');
  });
  expect(await send({ id: 1 })).toBe(1);
  expect(await send({ id: 3 })).toBe(2);
});

test('a caller who gives up during the look is answered at once, and nothing is run', async () => {
  const made = remote();
  const { send, ran } = await askedAgain(made);
  made.lookBy(() => new Promise(() => undefined));
  const giveUp = new AbortController();
  const call = send.try({ id: 4 }, { signal: giveUp.signal });
  await rest();
  giveUp.abort();
  expect(await call).toMatchObject({ ok: false, error: { code: 'ABORTED' }, receipt: { executed: false } });
  expect(ran()).toBe(1);
  expect(made.asked.claims).toBe(0);
});

test('a caller who gives up in the moment in which the look is answered starts nothing', async () => {
  const made = remote();
  const { send, ran } = await askedAgain(made);
  const seen = gate<undefined>();
  made.lookBy(() => seen.promise);
  const giveUp = new AbortController();
  const call = send.try({ id: 5 }, { signal: giveUp.signal });
  await rest();
  seen.resolve(undefined);
  // Heard by the ledger, not yet by the call.
  void seen.promise.then(() => giveUp.abort());
  expect(await call).toMatchObject({ ok: false, error: { code: 'ABORTED' } });
  await rest();
  expect(ran()).toBe(1);
});

test('closing ends a look that the store does not answer', async () => {
  const made = remote();
  const { semel, send, ran } = await askedAgain(made);
  made.lookBy(() => new Promise(() => undefined));
  const call = send.try({ id: 6 });
  let isAnswered = false;
  void call.then(() => {
    isAnswered = true;
  });
  await rest();
  await semel.close({ grace: 0 });
  await rest();
  expect(isAnswered).toBe(true);
  expect(await call).toMatchObject({ ok: false, error: { code: 'STORE_UNAVAILABLE', retriable: false } });
  expect(ran()).toBe(1);
});
