// The process of an agent is killed in the middle, and a new one makes the whole run again.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';

/** Every harness, by its module and name. */
const harnesses: readonly (readonly [string, string, string])[] = [
  ['AI SDK 7', './ai-sdk-harness.ts', 'aiSdk7'],
  ['OpenAI Agents', './openai-agents-harness.ts', 'beforeTool'],
  ['LangChain', './langchain-harness.ts', 'langchainByTool'],
  ['Anthropic', './anthropic-harness.ts', 'ownLoop'],
];

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly signal: NodeJS.Signals | null;
}

/** An agent of this harness, in a process of its own each time it runs. */
function agentOf(module: string, name: string) {
  const folder = mkdtempSync(join(tmpdir(), 'semel-crash-'));
  folders.push(folder);
  const worker = join(import.meta.dirname, 'crash-worker.ts');
  return {
    run: (dies: string) =>
      new Promise<Ended>((resolve) => {
        const child = execFile(
          process.execPath,
          [worker, module, name, folder, dies],
          (_error, stdout, stderr) => resolve({ stdout, stderr, signal: child.signalCode }),
        );
      }),
    refunds: () => readFileSync(join(folder, 'refunds.txt'), 'utf8'),
  };
}

describe.concurrent.each(harnesses)('%s', (_framework, module, name) => {
  test('killed after the refund was recorded: the next process replays it', async ({ expect }) => {
    const agent = agentOf(module, name);
    expect((await agent.run('after it is recorded')).signal).toBe('SIGKILL');
    const { stdout, stderr } = await agent.run('never');
    expect(stdout, stderr).toBe('[{"refunded":4200}]');
    expect(agent.refunds()).toBe('o-17\n');
  });

  test('killed between the refund and its record: the next process gets IN_DOUBT', async ({ expect }) => {
    const agent = agentOf(module, name);
    expect((await agent.run('before it is recorded')).signal).toBe('SIGKILL');
    const { stdout, stderr } = await agent.run('never');
    expect(JSON.parse(stdout || '[]'), stderr).toMatchObject([{ code: 'IN_DOUBT', retriable: false }]);
    expect(agent.refunds()).toBe('o-17\n');
  });
});
