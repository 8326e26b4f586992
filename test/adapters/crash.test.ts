// The process of an agent is killed in the middle, and a new one makes the whole run again.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

/** Every harness, by its module and name. */
const harnesses: readonly (readonly [string, string, string])[] = [
  ['AI SDK 6', './ai-sdk-harness.ts', 'aiSdk6'],
  ['AI SDK 7', './ai-sdk-harness.ts', 'aiSdk7'],
  ['OpenAI Agents', './openai-agents-harness.ts', 'beforeTool'],
  ['LangChain', './langchain-harness.ts', 'langchainByTool'],
  ['Anthropic', './anthropic-harness.ts', 'ownLoop'],
];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'semel-crash-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const refunds = () => readFileSync(join(folder, 'refunds.txt'), 'utf8');

function agent(module: string, name: string, dies: string) {
  const worker = join(import.meta.dirname, 'crash-worker.ts');
  return spawnSync(process.execPath, [worker, module, name, folder, dies], { encoding: 'utf8' });
}

describe.each(harnesses)('%s', (_framework, module, name) => {
  test('killed after the refund was recorded: the next process replays it', () => {
    expect(agent(module, name, 'after it is recorded').signal).toBe('SIGKILL');
    const { stdout, stderr } = agent(module, name, 'never');
    expect(stdout, stderr).toBe('[{"refunded":4200}]');
    expect(refunds()).toBe('o-17\n');
  });

  test('killed between the refund and its record: the next process is told that it is in doubt', () => {
    expect(agent(module, name, 'before it is recorded').signal).toBe('SIGKILL');
    const { stdout, stderr } = agent(module, name, 'never');
    expect(JSON.parse(stdout || '[]'), stderr).toMatchObject([{ code: 'IN_DOUBT', retriable: false }]);
    expect(refunds()).toBe('o-17\n');
  });
});
