// `fetch` does not throw for a 503. A tool that does not look at the status is recorded as landed, and somebody has to be told.

import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { target } from './support.ts';

test.each([
  ['a 503 that nobody looked at', [503], true],
  ['a 401', [401], true],
  ['a success', [200], false],
  ['a later success', [503, 200], false],
  ['a refusal, which may be expected', [409], false],
] as const)('%s: %s, warned of: %s', async (_, statuses, isWarned) => {
  const left = [...statuses];
  const server = await target((_request, response) => {
    response.statusCode = left.shift() ?? 200;
    response.end('{}');
  });
  const said: string[] = [];
  await using semel = createSemel({
    store: 'memory:',
    namespace: 'test',
    onWarning: (text) => said.push(text),
  });
  const mail = semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    async run(_args: { to: string }, ctx) {
      for (const nth of statuses.keys()) await ctx.fetch(server.url, { method: 'POST', body: `${nth}` });
    },
  });
  expect((await mail.try({ to: 'ann' })).ok).toBe(true);
  const warned = said.filter((text) => text.includes('check `response.ok`'));
  expect(warned).toHaveLength(isWarned ? 1 : 0);
});
