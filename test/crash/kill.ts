// Lets one process die at a point, and lets another come after it.

import { expect } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import type { SurvivorJob, SurvivorLine } from './survivor.ts';
import type { VictimJob, VictimLine } from './victim.ts';

export type Place = Pick<VictimJob, 'ledger' | 'url'>;

export async function kill(
  place: Place,
  part: Pick<VictimJob, 'line' | 'point' | 'intent' | 'aheadMs' | 'isUnprovable'>,
): Promise<void> {
  const job: VictimJob = { ...place, ...part, wording: 'victim', how: 'die' };
  const victim = startNode<VictimLine>(new URL('./victim.ts', import.meta.url), job);
  const { signal } = await victim.ended;
  expect(victim.errors()).toBe('');
  expect(victim.lines).toEqual([{ at: part.point }]);
  expect(signal).toBe('SIGKILL');
}

export async function survive(
  place: Place,
  part: Pick<SurvivorJob, 'line' | 'intents' | 'aheadMs'>,
): Promise<readonly SurvivorLine[]> {
  const job: SurvivorJob = { ...place, ...part };
  const survivor = startNode<SurvivorLine>(new URL('./survivor.ts', import.meta.url), job);
  await survivor.ended;
  expect(survivor.errors()).toBe('');
  return survivor.lines;
}
