// A short simulation with every test run; CI runs 60,000 histories in a step of its own (scripts/verify.ts).
import { describe, expect, test } from 'vitest';
import type { ContractDefinition } from '../../src/core/contract/contract.ts';
import { newTally, runBlock } from './block.ts';
import { chance } from './chance.ts';
import { makePlan } from './contracts.ts';
import { runHistory } from './history.ts';
import { isVoid } from './report.ts';
import { outside } from './scheduler.ts';

describe('the simulator', () => {
  test('finds no violation in 2,000 histories', { timeout: 900_000 }, async () => {
    const result = await outside(() => runBlock({ seed: 1, count: 2_000 }, false));
    expect(result.failures).toEqual([]);
    expect(isVoid(result)).toBe(false);
  });

  test('explores every field of a contract but those that no effect depends on', () => {
    const known: Readonly<Record<keyof ContractDefinition, true | string>> = {
      name: true,
      version: true,
      effect: true,
      stakes: true,
      per: true,
      identity: true,
      content: true,
      volatile: true,
      strict: 'refuses before anything runs: test/library/strict.test.ts',
      normalize: true,
      window: true,
      failureWindow: true,
      weakWindow: 'needs a turn that an adapter guessed',
      weak: 'the same',
      lease: true,
      timeout: true,
      ifBusy: true,
      wait: true,
      retry: true,
      maxAttempts: true,
      provider: true,
      verifyAfter: true,
      via: true,
      dispatch: true,
      result: true,
      redact: true,
      permissions: 'asked before anything is claimed',
      share: true,
      was: true,
      mode: 'observing gives the promise up',
      onDoubt: true,
    };
    const seen = new Set<string>();
    for (let seed = 1; seed <= 400; seed += 1)
      for (const { definition } of makePlan(chance(seed), 1, undefined).versions)
        for (const field of Object.keys(definition)) seen.add(field);
    // `per` is made for each spelling of its zone.
    const missing = Object.entries(known).filter(([field, why]) => why === true && !seen.has(field));
    expect(missing.map(([field]) => field)).toEqual(['per']);
  });

  test('plays the same history again, event by event', async () => {
    const play = (seed: number) => {
      const { table, faults: faultCounts } = newTally();
      const lines: string[] = [];
      const outcome = runHistory({ seed, table, faultCounts, trace: (line) => lines.push(line) });
      return { lines, fingerprint: outcome.fingerprint };
    };
    const [first, second, other] = await outside(() => [play(7), play(7), play(8)]);
    expect(first?.lines.length).toBeGreaterThan(20);
    expect(first).toEqual(second);
    expect(first?.fingerprint).not.toBe(other?.fingerprint);
  });
});
