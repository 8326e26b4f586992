// The pipes of a run are left to the next one. Whatever a run leaves besides, the next one is not touched by it.

import { readdirSync, symlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { closing, eventually, kernel, place } from './place.ts';

const job = (...words: readonly string[]) => ['run', 'job', '--per', 'none', '--', ...words];

test('only the first run makes pipes', async () => {
  const at = place();
  await at.semel(job('true'));
  const spare = readdirSync(at.path(`ledger.db-live/${kernel}/spare`));
  expect(spare).toHaveLength(1);
  // A PATH without mkfifo.
  symlinkSync('/bin/echo', at.path('echo'));
  const { semel } = at.with({ env: { PATH: at.folder } });
  for (const word of ['one', 'two'])
    expect(await semel(job('echo', word))).toMatchObject({ code: 0, stdout: `${word}\n`, stderr: '' });
  expect(readdirSync(at.path(`ledger.db-live/${kernel}`))).toEqual(['spare']);
});

test('where pipes cannot be made, nothing is run, and it says so', async () => {
  const at = place();
  const said = await at.with({ env: { PATH: at.folder } }).semel(job('/bin/echo', 'ran'));
  expect(said).toMatchObject({ code: 69, stdout: '' });
  expect(said.stderr).toMatch(
    /Could not make a named pipe in \S+-live\/\w+ \(.*mkfifo.*\)\. Nothing was run\./,
  );
});

test('what writes on after its run is not heard in the next one', async () => {
  const at = place();
  // It lets go of all but the output of its run, so nobody knows of it.
  const hidden = `trap "" PIPE; ${closing('*-live/*')}; touch hidden; until [ -e go ] || [ ! -e hidden ]; do sleep 0.02; done; echo late; echo late >&2; touch written`;
  await at.semel(job('bash', '-c', `setsid bash -c '${hidden}' & until [ -e hidden ]; do sleep 0.02; done`));
  const next = at.start(
    job('bash', '-c', 'echo one; touch go; until [ -e written ]; do sleep 0.02; done; sleep 0.1; echo two'),
  );
  expect(await next.ended).toMatchObject({ code: 0, stdout: 'one\ntwo\n', stderr: '' });
});

test('what keeps only the life of its run does not keep the next one alive', async () => {
  const at = place();
  const hidden = `${closing('*/descendants')}; exec >/dev/null 2>&1 </dev/null; touch hidden; until [ -e go ] || [ ! -e hidden ]; do sleep 0.02; done`;
  await at.semel(job('bash', '-c', `setsid bash -c '${hidden}' & until [ -e hidden ]; do sleep 0.02; done`));
  // The next one is killed with all that it started: the one after it need not wait.
  const killed = at.start(job('sh', '-c', 'echo $$ > pid; exec sleep 60'));
  const pid = await eventually(() => at.lines('pid')[0]);
  killed.child.kill('SIGKILL');
  process.kill(Number(pid), 'SIGKILL');
  await killed.ended;
  expect(await at.semel(job('echo', 'ran'))).toMatchObject({ code: 0, stdout: 'ran\n' });
  at.file('go', '');
});
