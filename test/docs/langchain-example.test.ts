// The story that examples/langchain.ts tells.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { root } from './page.ts';

test('examples/langchain.ts makes one refund in two runs, and tells the model of the second call', () => {
  const preload = pathToFileURL(join(import.meta.dirname, 'semel-from-source.ts'));
  const story = execFileSync(process.execPath, [join(root, 'examples/langchain.ts')], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: `--import=${preload}` },
  });
  const [, failed = '', again = '', bank = ''] = story.split(/^(?:\d\. .*|What the bank saw)$/m);
  expect(failed.trim()).toBe('the run failed: 503: the model is overloaded');
  expect(again).toContain('the program gets of call_2: {"id":"re_1"}');
  expect(again).toMatch(/Already done on .*; nothing was sent again\. .* your `reason` was not used\./);
  expect(bank.trim().split(/\s*\n\s*/)).toEqual(['o-17 4200', 'refunds: 1']);
});
