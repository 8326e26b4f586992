// The log of what landed: one line per effect, on disk before anybody is answered.

import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { type EffectEntry, parseLines } from '../checker/logs.ts';

/** An effect with everything that its sender said about itself. */
export interface LandedEffect extends EffectEntry {
  readonly attempt: number | null;
  readonly pid: number | null;
  /** A digest of the body. */
  readonly body: string;
}

export interface EffectLog {
  readonly landed: readonly LandedEffect[];
  append(effect: Omit<LandedEffect, 'seq'>): LandedEffect;
  close(): void;
}

export function openEffectLog(path: string): EffectLog {
  const file = openSync(path, 'a', 0o600);
  const landed: LandedEffect[] = readEffects(path);
  return {
    landed,
    append(effect) {
      const numbered = { seq: (landed.at(-1)?.seq ?? 0) + 1, ...effect };
      writeSync(file, `${JSON.stringify(numbered)}\n`);
      fsyncSync(file);
      landed.push(numbered);
      return numbered;
    },
    close: () => closeSync(file),
  };
}

/** What landed, as the disk tells it: also after the server is gone. */
export function readEffects(path: string): LandedEffect[] {
  return parseLines<LandedEffect>(readFileSync(path, 'utf8'));
}
