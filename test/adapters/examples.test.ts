// The examples with agents run offline, and land one refund.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

function told(name: string): string {
  const preload = pathToFileURL(join(import.meta.dirname, '../docs/semel-from-source.ts'));
  return execFileSync(process.execPath, [join(import.meta.dirname, `../../examples/${name}.ts`)], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: `--import=${preload}` },
  });
}

test('examples/langchain.ts makes one refund in two runs, and tells the model of the second call', () => {
  const [, failed = '', again = '', bank = ''] = told('langchain').split(/^(?:\d\. .*|What the bank saw)$/m);
  expect(failed.trim()).toBe('the run failed: 503: the model is overloaded');
  expect(again).toContain('the program gets of call_2: {"id":"re_1"}');
  expect(again).toMatch(/Already done on .*; nothing was sent again\. .* your `reason` was not used\./);
  expect(bank.trim().split(/\s*\n\s*/)).toEqual(['o-17 4200', 'refunds: 1']);
});

test('examples/ai-sdk.ts: the whole run is made three times, one refund lands', () => {
  const story = told('ai-sdk');
  expect(story).toMatch(/run 1: .* refunds at the bank: 1\n/);
  expect(story).toMatch(/run 3: .* refunds at the bank: 1\n/);
  expect(story).toMatch(/the model was told: Already done; nothing was sent again\./);
});

test.each(['openai-agents', 'anthropic'])('examples/%s.ts asks three times, and one refund lands', (name) => {
  const story = told(name);
  expect(story.match(/the model reads: .*re_1/g)).toHaveLength(3);
  expect(story.match(/Already done on .* nothing was sent again/g)).toHaveLength(2);
  expect(story.match(/as first worded: your `reason` was not used/g)).toHaveLength(1);
  const [, bank = ''] = story.split('What the bank saw');
  expect(bank.trim().split(/\s*\n\s*/)).toEqual(['o-17 42', 'effects: 1']);
});
