// A shell agent that plans, writes, publishes and dies: the next attempt goes on with the same plan, text and choice.

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { daily, place } from './place.ts';

const day = (n: number) => [...daily, '--at', new Date(Date.UTC(2026, 5, n, 7)).toISOString()];

test('run 1 picks, writes, publishes and dies; run 2 of the slot continues with the same choices in another process', async () => {
  const at = place();
  writeFileSync(
    at.path('agent.sh'),
    `topic=$(${at.word} pick topic --from "$TOPICS" --not-recent 2) || exit 9
     plan=$(${at.word} step plan -q -- sh -c 'echo planned >> effects; date +%N') || exit 9
     ${at.word} step draft -q -o draft.md -- sh -c 'echo drafted >> effects; echo "draft $(date +%N)"' || exit 9
     echo "$topic $plan $(cat draft.md)"
     ${at.word} once publish -q -- sh -c "echo published >> effects; echo '{\\"slug\\":\\"$topic\\"}'" || exit 9
     [ "$SEMEL_ATTEMPT" = 1 ] && kill -9 $$
     exit 0`,
  );
  const run = (topics: string) =>
    at.with({ env: { TOPICS: topics } }).semel('run', 'blog', ...day(19), '--', 'sh', 'agent.sh');
  const first = await run('a,b,c,d');
  expect(first.code).toBe(137);
  rmSync(at.path('draft.md'));
  // The list has changed meanwhile, and the file is gone.
  const second = await run('x,y,z');
  expect([second.code, second.stdout]).toEqual([0, first.stdout]);
  expect(at.lines('effects')).toEqual(['planned', 'drafted', 'published']);
});

test('a step that fails leaves no file, is run again, and keeps what it made', async () => {
  const at = place();
  writeFileSync(at.path('out.txt'), 'as it was');
  const run = (script: string) =>
    at.semel(
      'run',
      'job',
      ...day(1),
      '--',
      'sh',
      '-c',
      `${at.word} step make -o out.txt -- sh -c '${script}'; exit 1`,
    );
  await run('echo half; exit 4');
  expect(readFileSync(at.path('out.txt'), 'utf8')).toBe('as it was');
  await run('echo whole');
  expect(readFileSync(at.path('out.txt'), 'utf8')).toBe('whole\n');
  writeFileSync(at.path('out.txt'), 'changed by hand');
  const third = await run('echo another');
  expect(third.stderr).toContain('out.txt is restored');
  expect(readFileSync(at.path('out.txt'), 'utf8')).toBe('whole\n');
  expect((await run('echo another')).stderr).toContain('out.txt is as it left it');
});

test('a step whose output cannot be kept or written says so, and does not pass for done with its file', async () => {
  const at = place();
  const step = (file: string, script: string) =>
    at.semel(
      'run',
      'job',
      ...day(1),
      '--',
      'sh',
      '-c',
      `${at.word} step make -o ${file} -- sh -c '${script}'`,
    );
  const large = await step('large.bin', 'head -c 17000000 /dev/zero');
  expect([large.code, large.stderr]).toEqual([70, expect.stringContaining('large.bin was not written')]);
  const again = await step('large.bin', 'head -c 17000000 /dev/zero');
  expect([again.code, again.stderr]).toEqual([70, expect.stringContaining('large.bin was not written')]);
  expect(existsSync(at.path('large.bin'))).toBe(false);

  const other = place();
  const nowhere = `${other.word} step make -o no/such/folder -- echo x`;
  const said = await other.semel('run', 'job', ...daily, '--', 'sh', '-c', nowhere);
  expect([said.code, said.stderr]).toEqual([64, expect.stringContaining('could not be written')]);
  expect(said.stderr).not.toContain('at async');
});

test('recent picks are those of earlier slots, and of this job and these ids only', async () => {
  const at = place();
  const pick = async (n: number, ...ids: string[]) => {
    const script = `${at.word} pick topic --from a,b --not-recent 1`;
    return (
      await at.semel('run', 'job', ...day(n), ...ids, '--per', 'day', '--', 'sh', '-c', `${script}; exit 1`)
    ).stdout;
  };
  const [first, second] = [await pick(10), await pick(11)];
  expect(second).not.toBe(first);
  expect(await pick(12)).toBe(first);
  // Later slots do not count: an earlier slot that is made up for is drawn as if they were not there.
  const other = await pick(10, '--id', 'customer=1');
  expect(await pick(9, '--id', 'customer=1')).toMatch(/^[ab]\n$/);
  expect(await pick(10, '--id', 'customer=1')).toBe(other);
  expect(await pick(10)).toBe(first);
});

test('recent work can be put into a prompt, and a run can be seeded by it', async () => {
  const at = place();
  for (const n of [1, 2, 3]) {
    const publish = `${at.word} once publish -- sh -c 'echo "{\\"slug\\":\\"post-${n}\\",\\"words\\":${n}}"'`;
    expect((await at.semel('run', 'blog', ...day(n), '--', 'sh', '-c', publish)).code).toBe(0);
  }
  expect((await at.semel('recent', 'publish', '-n', '2', '--field', 'slug')).stdout).toBe('post-3\npost-2\n');
  const json = JSON.parse((await at.semel('recent', 'publish', '--json')).stdout);
  expect(json).toMatchObject([{ result: { slug: 'post-3', words: 3 } }, {}, {}]);
  const seed = async () =>
    JSON.parse(
      (
        await at.semel(
          'run',
          'seeded',
          ...day(19),
          '--again',
          String(Math.random()),
          '--tz',
          'Europe/Paris',
          '--',
          'sh',
          '-c',
          `${at.word} seed --json --recent publish`,
        )
      ).stdout,
    );
  expect(await seed()).toMatchObject({
    job: 'seeded',
    slot: '2026-06-19',
    date: '2026-06-19',
    weekday: 'Friday',
    zone: 'Europe/Paris',
    picks: {},
    recent: { publish: [{ slug: 'post-3' }, { slug: 'post-2' }, { slug: 'post-1' }] },
  });
  expect((await seed()).seed).toBe((await seed()).seed);
  expect(existsSync(at.path('ledger.db-live'))).toBe(true);
});
