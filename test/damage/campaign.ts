// Damages copies of ledgers and makes every call again: none may run a second time, and none may get another value than
// the first time.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isSemelError } from '../../src/core/errors.ts';
import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { claimRequest } from '../../src/testing/store-contract/attempt.ts';
import { chanceOf } from '../processes/chance.ts';
import { type Kind, kinds } from './kinds.ts';
import { copyFiles, type Sample, samplesIn } from './ledgers.ts';

export interface Tally {
  readonly kind: string;
  trials: number;
  /** Refused when it was opened. */
  refused: number;
  /** Opened, and some of the calls were refused. */
  partly: number;
  /** Opened, and every call was answered as before. */
  unharmed: number;
  /** Refusals that tell the caller to try again. */
  retriable: number;
  reExecuted: number;
  wrongValues: number;
  /** The first that went wrong, so that it can be played again. */
  first: string | undefined;
}

export interface CampaignOptions {
  readonly folder: string;
  /** How many of each kind. */
  readonly trials: number;
  readonly seed: number;
  readonly only?: string | undefined;
}

export async function campaign({ folder, trials, seed, only }: CampaignOptions): Promise<readonly Tally[]> {
  const place = mkdtempSync(join(folder, 'semel-damage-'));
  try {
    const samples = await samplesIn(place);
    const tallies: Tally[] = [];
    for (const kind of kinds.filter(({ name }) => only === undefined || name.includes(only))) {
      const tally = emptyTally(kind);
      const suited = samples.filter(kind.suits);
      for (let nth = 0; nth < trials; nth += 1)
        await trial(join(place, 'trial'), kind, suited[nth % suited.length] as Sample, seed + nth, tally);
      tallies.push(tally);
    }
    return tallies;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

function emptyTally({ name }: Kind): Tally {
  const counts = {
    trials: 0,
    refused: 0,
    partly: 0,
    unharmed: 0,
    retriable: 0,
    reExecuted: 0,
    wrongValues: 0,
  };
  return { kind: name, ...counts, first: undefined };
}

async function trial(folder: string, kind: Kind, sample: Sample, seed: number, tally: Tally): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, 'ledger.db');
  copyFiles(sample.now, path);
  kind.damage(path, sample, chanceOf(seed));
  tally.trials += 1;
  const store = sqliteStore({ path });
  try {
    await store.open();
    await callAll();
  } catch (error) {
    hear(error);
    tally.refused += 1;
  } finally {
    await store.close().catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  }

  async function callAll(): Promise<void> {
    let isHarmed = false;
    for (const { namespace, key, value } of sample.calls) {
      try {
        const answer = await store.claim(claimRequest({ namespace, key }));
        const found = answer.won ? undefined : (answer.record?.result?.text ?? null);
        if (answer.won) tally.reExecuted += 1;
        else if (found !== value) tally.wrongValues += 1;
        if (answer.won || found !== value) tally.first ??= `seed ${seed}, ${sample.name}: ${key}`;
      } catch (error) {
        hear(error);
        isHarmed = true;
      }
    }
    if (isHarmed) tally.partly += 1;
    else tally.unharmed += 1;
  }

  /** Damage is for a person, not for a retry. */
  function hear(error: unknown): void {
    if (isSemelError(error) && !error.retriable) return;
    tally.retriable += 1;
    tally.first ??= `seed ${seed}, ${sample.name}: ${String(error).slice(0, 200)}`;
  }
}

export function isClean({ reExecuted, wrongValues, retriable }: Tally): boolean {
  return reExecuted === 0 && wrongValues === 0 && retriable === 0;
}
