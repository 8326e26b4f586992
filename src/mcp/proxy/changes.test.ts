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
