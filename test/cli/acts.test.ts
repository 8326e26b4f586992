// `semel retry`, `semel forget` and `semel prune`: what a person does to records that are not in doubt.

import { expect, test } from 'vitest';
import { operator } from './operator.ts';

async function named(desk: ReturnType<typeof operator>, to: string) {
  const { items } = await desk.by((semel) => semel.records.list());
  return items.find(({ args }) => (args as { to: string }).to === to)!;
}

test('retry reopens a failure, and makes what was given up an open question again', async () => {
  const desk = operator();
  await desk.by(async (semel, mail) => {
    await mail.try({ to: 'nobody' });
    await mail.try({ to: 'lost-1' });
    await mail.try({ to: 'ann' });
    const [doubt] = (await semel.doubts.list()).items;
    await semel.doubts.resolve(doubt!.ref, { abandon: 'no idea' });
  });
  const failed = await named(desk, 'nobody');
  const givenUp = await named(desk, 'lost-1');
  const { code, stdout, stderr } = await desk.semel([
    'retry',
    failed.id,
    givenUp.id,
    'zzzzzzzz',
    '-m',
    'new box',
    '--by',
    'ann',
  ]);
  expect(code).toBe(64);
  expect(stderr).toContain('There is no record zzzzzzzz in shop');
  expect(stdout).toMatch(/mail.send {2}released: the next call executes/);
  expect(stdout).toMatch(/mail.send {2}in doubt again. Decide: semel resolve \w+@3 landed\/not-landed\//);
  expect(await named(desk, 'nobody')).toMatchObject({ status: 'released' });
  expect(await named(desk, 'lost-1')).toMatchObject({ inDoubt: true });
  const history = await desk.by((semel) => semel.records.history(failed.key));
  expect(history.at(-1)?.detail).toMatchObject({ act: 'reopen', by: 'ann', note: 'new box' });

  for (const [to, next] of [
    ['ann', 'To run it again, `forget` it.'],
    ['nobody', 'The next call executes it.'],
    ['lost-1', 'It is in doubt: resolve it.'],
  ] as const) {
    const refused = await desk.semel(['retry', (await named(desk, to)).id]);
    expect(refused.stderr).toContain(next);
    expect(refused.code).toBe(70);
  }
  expect((await desk.semel(['retry'])).code).toBe(64);
});

test('forget asks, acts only on what was shown, and the next call executes', async () => {
  const desk = operator();
  const { id } = await desk.by(async (_, mail) => {
    await mail.try({ to: 'lost-1' });
    return (await mail.try({ to: 'ann' })).receipt;
  });
  const unasked = await desk.semel(['forget', id]);
  expect(unasked.code).toBe(64);
  expect(unasked.stderr).toContain(
    'the next call of each of these executes, whether it landed before or not:',
  );
  expect(unasked.stderr).toContain(`  ${id}@1  mail.send  succeeded`);
  expect(unasked.stderr).toContain('--yes');
  expect(await named(desk, 'ann')).toMatchObject({ expired: false });

  const stale = await desk.semel(['forget', `${id}@7`, '--yes']);
  expect(stale.stderr).toContain('has changed since you looked');
  expect(stale.code).toBe(70);
  const open = await desk.semel(['forget', (await named(desk, 'lost-1')).id, '--yes']);
  expect(open.stderr).toContain('Resolve it instead.');
  expect(open.code).toBe(70);

  const done = await desk.semel(['forget', id, '--yes', '--json']);
  expect(done.json()).toMatchObject([{ id, expired: true }]);
  const again = await desk.by((_, mail) => mail.try({ to: 'ann' }));
  expect(again.receipt).toMatchObject({ executed: true, replayed: false });
});

test('prune counts what has expired, removes it, and nothing else', async () => {
  const desk = operator();
  await desk.by(async (semel, mail) => {
    for (const to of ['ann', 'bob', 'cid', 'lost-1']) await mail.try({ to });
    for (const { key, args } of (await semel.records.list()).items)
      if (['ann', 'bob'].includes((args as { to: string }).to)) await semel.records.forget(key);
  });
  expect((await desk.semel(['prune', '--dry-run', '--namespace', 'any'])).stdout).toBe(
    '2 records have expired. To remove: semel prune\n',
  );
  expect((await desk.semel(['prune', '--dry-run', '--json'])).json()).toEqual({ expired: 2 });
  expect((await desk.semel(['prune'])).stdout).toBe('Pruned 2 records.\n');
  expect((await desk.semel(['prune', '--json'])).json()).toEqual({ pruned: 0 });
  expect(await named(desk, 'lost-1')).toMatchObject({ inDoubt: true });
  expect(await named(desk, 'cid')).toMatchObject({ status: 'succeeded' });
  expect((await desk.semel(['prune', 'abcd'])).code).toBe(64);
});
