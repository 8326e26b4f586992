// What may go wrong, and how often: a profile makes some traces frequent that a uniform mix would rarely meet.

import type { Chance } from './chance.ts';

export const faultKinds = [
  'crash',
  'reboot',
  'pause',
  'sleep',
  'block',
  'lost request',
  'lost reply',
  'delayed request',
  'duplicated request',
  'old request',
  'settled otherwise',
  'store clock jump',
  'client clock jump',
  'outage before',
  'outage after',
  'store never answers',
  'effect delayed',
  'effect lost',
  'effect reply lost',
  'effect refused',
  'effect not sent',
  'effect denied',
  'effect landed, then error',
  'effect error, not landed',
  'effect landed, then another call failed',
  'verify unsure',
  'verify threw',
  'verify slow',
  'caller gave up',
  'run slow',
  'process closed',
] as const;

export type FaultKind = (typeof faultKinds)[number];

export interface Profile {
  readonly name: string;
  /** How long faults go on. */
  readonly chaosMs: number;
  readonly calls: number;
  /** Per process: the chance that it dies, or is stopped, at one of its events. */
  readonly crash: number;
  readonly pause: number;
  /** Per store request. */
  readonly lostRequest: number;
  readonly lostReply: number;
  readonly delay: number;
  readonly duplicate: number;
  readonly outage: number;
  /** No answer, and no word that there will be none. */
  readonly silence: number;
  /** Per effect request. */
  readonly effect: number;
  /** How many of those are delayed and how many are definite; the rest are ambiguous. */
  readonly effectDelay: number;
  readonly clockJump: number;
  readonly operator: number;
  readonly prune: number;
  /** Per store request that changes something: the chance that an old one arrives after it. */
  readonly echo: number;
  /**
   * Which contracts it prefers: those whose windows end while the history goes on, those whose windows end while
   * somebody waits, those whose target honours keys for a short while.
   */
  readonly bias?: 'brief' | 'fleeting' | 'keyed';
}

const none = {
  chaosMs: 30_000,
  calls: 4,
  crash: 0.1,
  pause: 0,
  lostRequest: 0,
  lostReply: 0,
  delay: 0,
  duplicate: 0,
  outage: 0,
  silence: 0,
  effect: 0.15,
  effectDelay: 0.15,
  clockJump: 0.05,
  operator: 0.6,
  prune: 0.4,
  echo: 0,
};

const profiles: readonly Profile[] = [
  { ...none, name: 'calm', crash: 0, effect: 0, clockJump: 0 },
  { ...none, name: 'crashes', crash: 0.7, effect: 0.35 },
  { ...none, name: 'zombies', chaosMs: 90_000, pause: 0.7, crash: 0.15, effect: 0.4 },
  {
    ...none,
    name: 'network',
    lostRequest: 0.1,
    lostReply: 0.12,
    delay: 0.08,
    duplicate: 0.15,
    crash: 0.2,
    effect: 0.3,
  },
  {
    ...none,
    name: 'copies',
    chaosMs: 120_000,
    duplicate: 0.5,
    delay: 0.05,
    crash: 0.25,
    effect: 0.35,
    prune: 1.5,
  },
  {
    ...none,
    name: 'echoes',
    bias: 'brief',
    chaosMs: 150_000,
    calls: 5,
    crash: 0.4,
    pause: 0.2,
    effect: 0.6,
    effectDelay: 0.2,
    operator: 5,
    prune: 5,
    echo: 0.7,
  },
  { ...none, name: 'outages', outage: 1, silence: 0.02, crash: 0.15, effect: 0.3 },
  { ...none, name: 'target', effect: 0.85, effectDelay: 0.3, calls: 5 },
  {
    ...none,
    name: 'provider',
    bias: 'keyed',
    chaosMs: 200_000,
    calls: 8,
    crash: 0.3,
    effect: 0.9,
    effectDelay: 0.15,
    operator: 0.3,
  },
  {
    ...none,
    name: 'waiters',
    bias: 'fleeting',
    chaosMs: 12_000,
    calls: 6,
    crash: 0.6,
    pause: 0.3,
    delay: 0.12,
    lostReply: 0.05,
    prune: 4,
  },
  { ...none, name: 'clocks', chaosMs: 240_000, clockJump: 1, crash: 0.3, effect: 0.35, calls: 6 },
  {
    ...none,
    name: 'operators',
    chaosMs: 240_000,
    operator: 5,
    crash: 0.5,
    pause: 0.3,
    effect: 0.6,
    effectDelay: 0.3,
    prune: 1,
  },
  { ...none, name: 'expiry', chaosMs: 400_000, calls: 6, prune: 2.5, pause: 0.3, effect: 0.3, operator: 2 },
  {
    ...none,
    name: 'everything',
    chaosMs: 180_000,
    calls: 6,
    crash: 0.4,
    pause: 0.3,
    lostRequest: 0.05,
    lostReply: 0.05,
    delay: 0.05,
    duplicate: 0.15,
    outage: 0.3,
    effect: 0.5,
    effectDelay: 0.3,
    clockJump: 0.2,
    operator: 2,
    prune: 1,
  },
];

export function pickProfile(chance: Chance): Profile {
  return chance.pick(profiles);
}

export interface Faults {
  readonly profile: Profile;
  readonly counts: Uint32Array;
  /** Until then faults happen. */
  active: boolean;
  count(kind: FaultKind): void;
  /** Decides, and counts what it decides. */
  strike(kind: FaultKind, probability: number): boolean;
}

export function createFaults(chance: Chance, profile: Profile): Faults {
  const counts = new Uint32Array(faultKinds.length);
  const faults: Faults = {
    profile,
    counts,
    active: true,
    count: (kind) => {
      const at = faultKinds.indexOf(kind);
      counts[at] = (counts[at] as number) + 1;
    },
    strike(kind, probability) {
      if (!faults.active || !chance.happens(probability)) return false;
      faults.count(kind);
      return true;
    },
  };
  return faults;
}
