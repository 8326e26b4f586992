// One world and one ledger per case: what the tools did in the world is counted.

import assert from 'node:assert/strict';
import { createSemel, type Semel } from '../../../src/semel/index.ts';
import { memoryStore } from '../../../src/store/memory.ts';
import type { AdapterHarness, AgentReport, AgentRun, Effects, Script, ScriptedCall } from './harness.ts';

export const contractPolicies = {
  refund: { effect: 'irreversible', per: 'ever', content: ['reason'] },
  mail: { effect: 'write-non-idempotent', content: ['subject', 'body'] },
  search: 'read',
} as const;

export const refund: ScriptedCall = {
  tool: 'refund',
  args: { order: 'o-17', amount: 4200, reason: 'it arrived broken' },
};
export const mail: ScriptedCall = {
  tool: 'mail',
  args: { to: 'ada@example.com', subject: 'Your order', body: 'It is on its way.' },
};
export const search: ScriptedCall = { tool: 'search', args: { query: 'order 17' } };

export interface Scene {
  readonly semel: Semel;
  /** What was done in the world, in order. */
  readonly done: readonly ScriptedCall[];
  readonly warnings: readonly string[];
  /** One turn of a conversation; the same one unless said. */
  play(script: Script, over?: Partial<AgentRun> & { readonly turn?: string }): Promise<AgentReport>;
  run(script: Script, over?: Partial<AgentRun>): AgentRun;
  did(...expected: readonly ScriptedCall['tool'][]): void;
}

export async function scene(
  harness: AdapterHarness,
  play: (scene: Scene) => Promise<void>,
  over: Partial<Effects> = {},
): Promise<void> {
  const done: ScriptedCall[] = [];
  const warnings: string[] = [];
  const effect = (tool: ScriptedCall['tool']) => (args: ScriptedCall['args']) => {
    done.push({ tool, args });
    return over[tool] === undefined ? { done: tool, number: done.length } : over[tool](args);
  };
  const effects: Effects = { refund: effect('refund'), mail: effect('mail'), search: effect('search') };
  const semel = createSemel({
    store: memoryStore(),
    namespace: 'adapter-contract',
    onWarning: (warning) => warnings.push(warning),
  });
  const asked = (script: Script, others: Partial<AgentRun> = {}): AgentRun => ({
    semel,
    effects,
    script,
    ...others,
  });
  try {
    await play({
      semel,
      done,
      warnings,
      run: asked,
      play: (script, { turn = 'turn-1', ...others } = {}) =>
        semel.within({ conversation: 'chat-7', turn }, () => harness.run(asked(script, others))),
      did(...expected) {
        assert.deepEqual(
          done.map(({ tool }) => tool),
          expected,
          'what was done in the world',
        );
      },
    });
  } finally {
    await semel.close({ grace: '1s' });
  }
}
