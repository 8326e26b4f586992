// What a person sees of a call that sent something, noted the provider's id, and was killed.
import { expect, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { place } from './place.ts';

test('`show` and `ls --json` show the provider’s id of a call whose process was killed', async () => {
  const { semel, path } = place();
  const paths = { ledger: path('ledger.db'), paid: path('paid') };
  const victim = startNode(new URL('../crash/noted-id-worker.ts', import.meta.url), paths);
  expect((await victim.ended).signal).toBe('SIGKILL');
  const [record] = (await semel('ls', '--json', '--namespace', 'crash')).json();
  expect(record).toMatchObject({ remoteRef: 're_123', status: 'running' });
  const { stdout } = await semel('show', `${record?.id}`, '--namespace', 'crash');
  expect(stdout).toContain('re_123 (sent, not confirmed)');
  await semel('resolve', `${record?.ref}`, 'died', '--namespace', 'crash');
  const doubt = await semel('doubt', '--namespace', 'crash');
  expect(doubt.stdout).toContain('remote   re_123 (sent, not confirmed)');
});
