// A process that is really killed in the middle of its effect: another one verifies, and sweeps the doubt away.

import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { verifyGitHubComment } from '../../src/providers/verifiers/index.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { gitHubCases } from './stand-ins/github.ts';
import { goodToken, startStandIn } from './stand-ins/stand-in.ts';

const shape = gitHubCases[1]!.shape;

test.each([
  ['after it was sent: found, and not sent again', true],
  ['before it was sent: not found, and sent once', false],
])('killed %s', async (_, reaches) => {
  using scratch = newScratch('killed');
  const at = await startStandIn(shape, Date.now);
  const worker = startNode(new URL('killed-worker.ts', import.meta.url), {
    folder: scratch.folder,
    url: at.url,
    reaches,
  });
  expect((await worker.ended).signal).toBe('SIGKILL');
  expect(at.things).toHaveLength(reaches ? 1 : 0);

  await using semel = createSemel({ store: `sqlite:${scratch.path('ledger.db')}`, namespace: 'shop' });
  let runs = 0;
  const comment = semel.tool({
    name: 'comment',
    effect: 'irreversible',
    per: 'ever',
    verifyAfter: '1s',
    run: (_: { issue: number }, ctx) => {
      runs += 1;
      return { id: at.add({ body: JSON.stringify({ body: ctx.mark() }) }).id };
    },
    verify: verifyGitHubComment({
      token: goodToken,
      baseUrl: at.url,
      repo: 'ann/shop',
      issue: ({ issue }: { issue: number }) => issue,
      lag: 0,
    }),
  });
  await expect.poll(() => semel.doubts.sweep(), { interval: 200 }).toMatchObject({ landed: 1 });
  expect(await comment({ issue: 7 })).toEqual({ id: '9001' });
  expect(at.things).toHaveLength(1);
  expect(runs).toBe(reaches ? 0 : 1);
});
