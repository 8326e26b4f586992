import { expect, test } from 'vitest';
import { rest, rig } from '../../../test/library/support.ts';
import { createChanges } from './changes.ts';

test('proxies that die while they note a change hold the others up for seconds only, however many do', async () => {
  const made = rig();
  for (let deaths = 0; deaths < 12; deaths += 1) {
    made.store.before = (method) => (method === 'settle' ? new Promise(() => undefined) : undefined);
    void createChanges(made.another(), 'shop').begin('me', { call: `act/${deaths}`, tool: 'act' });
    await rest();
    made.store.before = undefined;
    made.clock.jump(6_000);
  }
  const changes = createChanges(made.another(), 'shop');
  const end = await changes.begin('me', { call: 'act/last', tool: 'act' });
  await end(true);
  expect(await changes.since('me', 'act/0', new Date())).toMatchObject({ tool: 'act' });
});

test.each([
  ['a', 'b'],
  ['b', 'a'],
])('two proxies of one caller that note a change at once lose neither %s nor %s', async (one, other) => {
  const made = rig();
  const act = made.semel.tool({
    name: 'act',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: ({ id }: { id: string }) => (id === 'a' ? new Promise<never>(() => undefined) : id),
  });
  const begin = async (id: string) => {
    const { key } = await made.semel.keyOf(act, { id });
    return createChanges(made.another(), 'shop').begin('me', { call: key, tool: id });
  };
  // The proxy that sent a is killed after its server acted.
  void act({ id: 'a' });
  await act({ id: 'b' });
  const ends = await made.clock.until(Promise.all([begin(one), begin(other)]));
  await ends[one === 'b' ? 0 : 1](true);
  const { since } = createChanges(made.another(), 'shop');
  const { key } = await made.semel.keyOf(act, { id: 'b' });
  expect(await since('me', key, new Date(made.clock.now()))).toMatchObject({ isDone: false });
});

test('one proxy after the other overwrites nothing: a repeat of the last call is answered', async () => {
  const made = rig();
  const changes = () => createChanges(made.another(), 'shop');
  for (const call of ['act/a', 'act/b', 'act/c']) {
    const end = await changes().begin('me', { call, tool: 'act' });
    await end(true);
  }
  expect(await changes().since('me', 'act/c', new Date(made.clock.now()))).toBeUndefined();
});

test('what another proxy has passed on may change something until its end is noted, also where that proxy died', async () => {
  const made = rig();
  const [own, other] = [createChanges(made.another(), 'shop'), createChanges(made.another(), 'shop')];
  const end = await own.begin('me', { call: 'act/a', tool: 'act' });
  const endOfPut = await other.pass('me', 'put');
  await end(true);
  const since = () => own.since('me', 'act/a', new Date(made.clock.now()));
  expect(await since()).toMatchObject({ tool: 'put', isDone: false });
  await endOfPut(true);
  expect(await since()).toMatchObject({ tool: 'put', isDone: true });
});

test('what another proxy has passed on to its end is no change of what is done after it', async () => {
  const made = rig();
  const [own, other] = [createChanges(made.another(), 'shop'), createChanges(made.another(), 'shop')];
  await (await other.pass('me', 'put'))(true);
  await (await own.begin('me', { call: 'act/a', tool: 'act' }))(true);
  expect(await own.since('me', 'act/a', new Date(made.clock.now()))).toBeUndefined();
});
