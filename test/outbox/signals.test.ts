// What people and programs are told of the outbox: how many rows wait, and where a group has stopped.

import { prometheus } from 'semel/prometheus';
import { describe, expect, test } from 'vitest';
import { Rejected } from '../../src/index.ts';
import { readExposition } from '../signals/strict-exposition.ts';
import { places } from './places.ts';

describe.each(places)('$name', ({ open }) => {
  test('rows are counted by state, without keys, and a row behind a stopped one names it', async () => {
    await using at = await open();
    const tool = at.semel.tool({
      name: 'mail.send',
      effect: 'irreversible',
      per: 'ever',
      async run({ to }: { to: string }) {
        if (to === 'nobody') throw new Rejected('no such address');
        if (to === 'lost') throw new Error('socket hang up');
      },
    });
    const metrics = prometheus(at.semel);
    const find = async (name: string, labels = {}) =>
      readExposition(await metrics.text()).find(name, { namespace: 'shop', ...labels });
    const stage = (to: string, group: string) =>
      at.transaction((tx) => tool.stage(tx, { to }, { group, notBefore: Date.now() - 5_000 }));
    await stage('ada', 'a');
    await stage('nobody', 'a');
    for (const to of ['x', 'y']) await stage(to, 'a');
    await stage('lost', 'b');
    await stage('z', 'b');
    await at.semel.outbox.drain();
    await at.transaction((tx) => tool.stage(tx, { to: 'free' }));
    const counts = Object.fromEntries(
      await Promise.all(
        ['waiting', 'behind', 'in_doubt', 'dead'].map(async (state) => [
          state,
          await find('semel_outbox_rows', { state }),
        ]),
      ),
    );
    expect(counts).toEqual({ waiting: 1, behind: 3, in_doubt: 1, dead: 1 });
    expect(await find('semel_outbox_oldest_age_seconds')).toBeGreaterThan(0);
    expect(await metrics.text()).not.toMatch(/nobody|"b"/);
    metrics.stop();

    const rows = await at.store.outbox!.list({ limit: 10 });
    const behind = rows.map(({ state, behind: at }) => [state, rows.findIndex(({ n }) => n === at)]);
    expect(behind).toEqual([
      ['dead', -1],
      ['waiting', 0],
      ['waiting', 0],
      ['in doubt', -1],
      ['waiting', 3],
      ['waiting', -1],
    ]);
    expect(await at.store.outbox!.count(['other'])).toEqual([]);
  });
});
