// What really happened, in true time, as nobody inside the simulation could see it: attempts, verdicts, effects,
// and what callers were told. The checker reads this; nothing else does.

import type { Result } from '../../src/call/index.ts';
import type { Contract } from '../../src/core/contract/contract.ts';
import type { Outcome } from '../../src/core/contract/words.ts';
import type { ClaimFor } from '../../src/store/store.ts';
import type { Asked } from './callers.ts';
import type { SentNote } from './notes.ts';
import type { Owner } from './scheduler.ts';

/** When "not landed" may be believed of an attempt. */
export interface QuietTerms {
  /** This long after it crossed the line, where nobody knows how it ended. */
  readonly inFlightForMs: number;
  /** This long after its last renewal, where nobody knows how it ended. */
  readonly renewedMs: number;
  /** This long after it reported its end. */
  readonly networkMs: number;
  /** So much longer, where it hangs. */
  readonly overrunMs: number;
  /** Only its own process sends: `via: 'fetch'`. A child process of another tool may send after its death. */
  readonly endsWithProcess: boolean;
}

/** One claim that was won. */
export interface Attempt extends QuietTerms {
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
  readonly token: string;
  readonly for: ClaimFor;
  /** The call that asked for it. */
  readonly call: string | null;
  /** By the contract that asked for it. */
  readonly effect: Contract['effect'];
  /** A re-run that no window bounds: `onDoubt: 'rerun'`, or a class that may be repeated. */
  readonly unbounded: boolean;
  readonly claimedAt: number;
  /** When the store last let it cross the line. */
  crossedAt: number | undefined;
  /** When the provider's window was last judged, where that is not when it crossed. */
  judgedAt?: number | undefined;
  renewedAt: number | undefined;
  /** When the store heard from it, as the holder, how it ended. */
  endedAt: number | undefined;
  /** How it ended, by its own last word as the holder. */
  outcome: Outcome | undefined;
  /** How it ended, as the store first heard it. */
  endedAs?: Outcome;
  readonly notes: SentNote[];
  /** Its run, or what a framework does for it, has begun and is not over. */
  isRunning: boolean;
  /** Its run went on when the store was told how it ended: its time was over, or its process closed. */
  ranOn: 'timed out' | 'closed' | undefined;
  /** The store heard a success from it. */
  reported: boolean;
  /** When it last sent its effect. */
  sentAt: number | undefined;
  /** `run` returned a value, in time or not. */
  returned: boolean;
}

/** How long a run that hangs past its timeout is waited for, by what the documentation says; and how far it is ahead. */
export function overrunMs(timeoutMs: number): number {
  return Number.isFinite(timeoutMs) ? Math.max(timeoutMs, 300_000) + 30_000 : 0;
}

/** When nothing of an attempt can be on its way any more, by what the documentation says. */
export function quietAtOf({ crossedAt = 0, renewedAt = 0, endedAt, ranOn, ...terms }: Attempt): number {
  if (endedAt !== undefined && ranOn !== 'closed') return endedAt + terms.networkMs;
  return Math.max(crossedAt + terms.inFlightForMs, renewedAt + terms.renewedMs);
}

export interface Verdict {
  readonly key: string;
  readonly generation: number;
  /** It speaks for every attempt with a lower fence, and for none from this one on. */
  readonly fence: number;
  readonly act: 'cleared' | 'landed' | 'notLanded' | 'runAgain' | 'abandon' | 'died' | 'forget' | 'reopen';
  readonly at: number;
  readonly forced: boolean;
}

export interface Effect {
  readonly id: number;
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
  /** Which request of its run it was. */
  readonly part: number;
  readonly identity: string;
  /** Whose call sent it. */
  readonly caller: string | undefined;
  /** The call that sent it. */
  readonly call: string;
  readonly sentAt: number;
  readonly at: number;
  /** When the target's list began to show it. */
  readonly seenAt: number;
  readonly providerKey: string | undefined;
  /** What it says besides the intent. */
  readonly note: string | undefined;
  /** The contract by which it was sent. */
  readonly contract: Contract;
  /** For a step: the call that it was made for, and the whole intent of that. */
  readonly of: (Home & { readonly identity: string }) | undefined;
}

/** Where a step belongs: the attempt of its call that took it. */
export interface Home {
  readonly call: CallLog;
  readonly key: string;
  readonly generation: number;
  readonly fence: number;
  readonly step: number;
}

/** All effects of one generation of a key: those of its steps too. */
export function madeFor({ effects }: Log, key: string, generation: number): readonly Effect[] {
  const isHere = (place: { readonly key: string; readonly generation: number } | undefined) =>
    place?.key === key && place.generation === generation;
  return effects.filter((effect) => isHere(effect) || isHere(effect.of));
}

export interface Completion {
  readonly at: number;
  readonly text: string | null;
  readonly windowMs: number;
  readonly kept: boolean;
}

/** How the last generation of a key ended, for the question whether the next one began too soon. */
export interface Ending {
  readonly status: 'succeeded' | 'failed';
  readonly at: number;
  readonly windowMs: number;
  readonly kept: boolean;
  lifted: boolean;
}

/** All that is known of one record key. */
export interface KeyLog {
  readonly key: string;
  highestFence: number;
  /** Token of the claim or act that changed hands last. */
  token: string;
  /** When the first attempt crossed the line that is not accounted for. */
  openSince: number | undefined;
  /** Token of a fenced attempt whose success is on file beside a running one. */
  news: string;
  readonly attempts: Attempt[];
  readonly verdicts: Verdict[];
  readonly completions: Map<number, Completion>;
  ending: Ending | undefined;
  /** The call that each generation was first claimed for. */
  readonly wanted: Map<number, CallLog>;
}

export interface CallLog {
  readonly id: string;
  readonly contract: Contract;
  readonly asked: Asked;
  /** It is a step of another call. */
  readonly home: Home | undefined;
  /** The tool, and what bounds the intent. */
  readonly scope: string;
  /** The whole intent, by the simulator's own reckoning. */
  readonly identity: string;
  /** The key, once it is known; once it holds a record, that record's. */
  key: string;
  /** All keys under which a record may answer for it. */
  keys: readonly string[];
  /** What it asks for besides the intent. */
  note: string | undefined;
  /** Effect requests that this call sent, by the fence that they were sent under. */
  readonly sent: number[];
  /** When it last sent one. */
  sentAt: number | undefined;
  /** `run` returned a value while the attempt was still its own. */
  returned: boolean;
  /** `verify` found that it landed, while the attempt was still its own. */
  found: boolean;
  /** When a framework last said how it ended. */
  saidAt?: number;
  /** Its caller stopped waiting. */
  gaveUp: boolean;
  /** The generation that it was told to wait for. */
  waitsFor: number | undefined;
  readonly askedAt: number;
  told: Result | undefined;
  toldAt: number;
  threw: boolean;
  /** Resolves once it is answered. */
  over: Promise<void>;
  /** Who made it. */
  readonly worker: Owner;
}

/** What a process had forgotten or reopened, and knows of. */
export interface KnownAct {
  readonly worker: Owner;
  readonly key: string;
  readonly generation: number;
  readonly at: number;
}

export interface Sweep {
  readonly worker: Owner;
  readonly from: number;
  until: number;
}

export interface Log {
  readonly keys: Map<string, KeyLog>;
  readonly effects: Effect[];
  readonly calls: CallLog[];
  readonly acts: KnownAct[];
  /** Calls may share what a sweep of their process executes. */
  readonly sweeps: Sweep[];
  /** Which process asked with a token. */
  readonly askers: Map<string, Owner>;
  /** The tokens whose holders were told that they lost their lease. */
  readonly lost: Set<string>;
  readonly violations: Violation[];
  keyLog(key: string): KeyLog;
  /**
   * The attempt that a run or a look of this call belongs to: the last one that it claimed, or the one under this fence. With
   * two versions of a tool the record may have another key than the call, also after its caller gave up.
   */
  attemptOf(call: CallLog, fence?: number): Attempt | undefined;
  violated(invariant: string, detail: string): void;
}

export interface Violation {
  readonly invariant: string;
  readonly detail: string;
}

export function createLog(): Log {
  const keys = new Map<string, KeyLog>();
  const violations: Violation[] = [];
  return {
    keys,
    effects: [],
    calls: [],
    acts: [],
    sweeps: [],
    askers: new Map(),
    lost: new Set(),
    violations,
    keyLog(key) {
      let found = keys.get(key);
      if (found === undefined) {
        found = {
          key,
          highestFence: 0,
          token: '',
          openSince: undefined,
          news: '',
          attempts: [],
          verdicts: [],
          completions: new Map(),
          ending: undefined,
          wanted: new Map(),
        };
        keys.set(key, found);
      }
      return found;
    },
    attemptOf({ id, key }, fence) {
      const isMeant = (attempt: Attempt) => fence === undefined || attempt.fence === fence;
      const isOwn = (attempt: Attempt) => attempt.call === id && isMeant(attempt);
      const found = [...keys.values()].flatMap(({ attempts }) => attempts.findLast(isOwn) ?? []);
      const own = found.sort((a, b) => a.claimedAt - b.claimedAt).at(-1);
      // A sweep claims in the name of the call that the record was made for.
      return own ?? keys.get(key)?.attempts.findLast(isMeant);
    },
    violated: (invariant, detail) => void violations.push({ invariant, detail }),
  };
}
