// `semel stats`: what records and their history come to.

import { createSemel, type Semel } from 'semel';
import { expect, test } from 'vitest';
import { place } from './place.ts';

const at = place({ SEMEL_STORE: '' });
const { semel, json, storeAt: store } = at;

const on = (library: string) => ['--store', store(library), '--namespace', 'shop'];

function open(name: string): Semel {
  return createSemel({ store: store(name), namespace: 'shop', onWarning: () => undefined });
}

test('executed, replayed, saved and in doubt are counted, by contract and in all', async () => {
  const library = open('counted.db');
  const mail = library.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    run: ({ lead }: { lead: number }) => {
      if (lead === 3) throw new Error('socket hang up');
      return lead;
    },
  });
  for (const lead of [1, 2, 3, 1, 1]) await mail.try({ lead });
  await library.once('deploy', 'abc', () => 'done');
  await library.close();

  expect(await json(['stats', ...on('counted.db')])).toMatchObject({
    by: 'day',
    records: 4,
    totals: { executed: 3, replayed: 2, saved: 2, inDoubt: 1, conflicts: 0, duplicates: 0 },
    doubts: { open: 1, resolved: 0, decided: 0 },
    contracts: [
      { contract: 'mail.send', executed: 2, replayed: 2, inDoubt: 1 },
      { contract: 'deploy', executed: 1, replayed: 0, inDoubt: 0 },
    ],
  });
  const { stdout } = await semel(['stats', '--by', 'hour', '--since', '2h', ...on('counted.db')]);
  expect(stdout).toContain(
    'In 2h: 3 executed, 2 replayed; 2 effects kept from landing twice.\n1 in doubt now',
  );
  expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT\d\dZ +3 +2 +1 +█+░+\?+$/m);
  expect(stdout).toMatch(/^mail\.send +2 +2 +2 +1 +0$/m);
  const only = await json(['stats', '--tool', 'deploy', ...on('counted.db')]);
  expect(only).toMatchObject({ records: 1, totals: { executed: 1, replayed: 0 } });

  const again = open('counted.db');
  const [doubt] = (await again.doubts.list()).items;
  await again.doubts.resolve(doubt!.ref, 'landed');
  await again.close();
  expect(await json(['stats', ...on('counted.db')])).toMatchObject({
    totals: { executed: 4, inDoubt: 0 },
    doubts: { open: 0, resolved: 1 },
  });
});

test('observe mode reports what it would have prevented', async () => {
  const library = open('observed.db');
  const post = library.tool({
    name: 'slack.post',
    mode: 'observe',
    effect: 'irreversible',
    per: 'ever',
    run: (_: { text: string }) => 'posted',
  });
  for (let times = 0; times < 4; times += 1) await post({ text: 'hello' });
  await post({ text: 'bye' });
  await library.close();
  const { stdout } = await semel(['stats', '--observe', ...on('observed.db')]);
  expect(stdout).toContain('semel would have prevented 3 duplicates in 7d.\n');
  expect(stdout).toMatch(/^slack\.post +2 +3 +0$/m);
});

test('an empty ledger has nothing to count, and one that is not there is an error', async () => {
  const library = open('empty.db');
  await library.open();
  await library.close();
  expect(await json(['stats', ...on('empty.db')])).toMatchObject({ records: 0, totals: { executed: 0 } });
  expect((await semel(['stats', ...on('none.db')])).code).toBe(69);
});

test('an endless chart is refused', async () => {
  const { code, stderr } = await semel(['stats', '--since', '90d', '--by', 'hour', ...on('empty.db')]);
  expect(code).toBe(64);
  expect(stderr).toContain('--since 90d makes more than 400 lines. Use a shorter time, or --by day.');
});
