// The examples with agents run offline, and land one refund.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

test.each(['openai-agents', 'anthropic'])('examples/%s.ts asks three times, and one refund lands', (name) => {
  const preload = pathToFileURL(join(import.meta.dirname, 'doors-from-source.ts'));
  const story = execFileSync(process.execPath, [join(import.meta.dirname, `../../examples/${name}.ts`)], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: `--import=${preload}` },
  });
  expect(story.match(/the model reads: .*re_1/g)).toHaveLength(3);
  expect(story.match(/Already done on .* nothing was sent again/g)).toHaveLength(2);
  expect(story.match(/as first worded: your `reason` was not used/g)).toHaveLength(1);
  const [, bank = ''] = story.split('What the bank saw');
  expect(bank.trim().split(/\s*\n\s*/)).toEqual(['o-17 42', 'effects: 1']);
});
