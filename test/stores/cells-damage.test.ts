// Cells that were changed behind semel's back: each byte counts, whether it belongs to a record, to what is left of one, to
// a write that is pending, or to the ledger's own cell.

import { expect, test } from 'vitest';
import { metaName } from '../../src/store/cells/index.ts';
import { claimRequest, take, theKey, theNamespace } from '../../src/testing/store-contract/attempt.ts';
import { type MemoryCells, memoryCells, nameOf } from './memory-cells.ts';

const record = nameOf({ namespace: theNamespace, key: theKey });
const refusal = { code: 'STORE_UNSAFE' };

/** The text with one byte changed, for each of its bytes; JSON stays JSON where it can. */
function* changedIn(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at] as string;
    const other = /\d/.test(byte) ? String((Number(byte) + 1) % 10) : /[a-z]/i.test(byte) ? 'q' : ' ';
    yield text.slice(0, at) + (other === byte ? 'z' : other) + text.slice(at + 1);
  }
}

async function refusesEveryByte(service: MemoryCells, name: string): Promise<void> {
  const cell = service.cells.get(name);
  if (cell === undefined) throw new Error(`there is no ${name}`);
  for (const text of changedIn(cell.text)) {
    service.cells.set(name, { ...cell, text });
    const store = service.open();
    await expect(store.read(theNamespace, theKey), text).rejects.toMatchObject(refusal);
    await expect(store.claim(claimRequest()), text).rejects.toMatchObject(refusal);
    await store.close();
  }
  service.cells.set(name, cell);
  const store = service.open();
  await store.read(theNamespace, theKey);
  await store.close();
}

test('a record', async () => {
  const service = memoryCells();
  const store = service.open();
  await (await take(store)).succeed('"sent"');
  await store.append([
    { namespace: theNamespace, key: theKey, generation: 1, fence: 1, type: 'noted', detail: { a: 1 } },
  ]);
  await refusesEveryByte(service, record);
  // The list names it and shows the rest.
  await (await take(store, { key: 'mail.send/=other' })).succeed();
  const cell = service.cells.get(record);
  service.cells.set(record, { text: cell?.text.replace('sent', 'lost') ?? '', tag: 'x' });
  const page = await service.open().list({ namespace: theNamespace, limit: 10 });
  expect([page.items.map(({ key }) => key), page.damaged?.map(({ key }) => key)]).toEqual([
    ['mail.send/=other'],
    [theKey],
  ]);
});

test('what a removed record left, its fence included', async () => {
  const service = memoryCells();
  const store = service.open();
  const retention = { windowMs: 0, failureWindowMs: 0, keep: false, periodEndsAt: null };
  await (await take(store, { retention })).succeed();
  expect(await store.prune(10)).toBe(1);
  await refusesEveryByte(service, record);
});

test('a write that is pending', async () => {
  const service = memoryCells();
  await service.open().open();
  const older = 'mail.send/=old';
  let isDead = false;
  const dying = service.open({
    onWritten({ key }) {
      isDead ||= key === older;
      if (isDead) throw new Error('died');
      return undefined;
    },
  });
  await dying.claim(claimRequest({ key: theKey, olderKeys: [older], crossing: true })).catch(() => undefined);
  const pending = [...service.cells].filter(([, { text }]) => text.includes('"pending"'));
  expect(pending).toHaveLength(1);
  const [name, cell] = pending[0] as (typeof pending)[number];
  const key = name.slice(theNamespace.length + 1);
  for (const text of changedIn(cell.text)) {
    service.cells.set(name, { ...cell, text });
    await expect(service.open().read(theNamespace, key), text).rejects.toMatchObject(refusal);
  }
});

test("the ledger's own cell", async () => {
  const service = memoryCells();
  await (await take(service.open())).succeed();
  await refusesEveryByte(service, nameOf(metaName));
});
