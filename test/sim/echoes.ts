// Old requests that arrive in whatever state the record is by then: copies that were on their way for long,
// claimants that die right after asking, operators who decide by what they saw before, clients that settle one
// attempt twice, with another ending. No rule may be led astray by any of them.

import { mayContinue } from '../../src/core/contract/version.ts';
import type {
  Act,
  ClaimRequest,
  Held,
  ResolveRequest,
  SettleRequest,
  StoredRecord,
  StoredResult,
} from '../../src/store/store.ts';
import type { Chance } from './chance.ts';
import type { Faults } from './faults.ts';
import type { Attempt, Log } from './log.ts';
import type { Scheduler } from './scheduler.ts';
import { namespace, type StoreHost } from './store-host.ts';

export type EchoedName = 'claim' | 'renew' | 'dispatch' | 'clear' | 'settle' | 'resolve';

export interface Echoes {
  /** The store got this request: older ones for the same key may follow it. */
  heard(name: EchoedName, request: { readonly key: string }): void;
  /** Records may be gone now. */
  pruned(): void;
}

export interface EchoesOptions {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly faults: Faults;
  readonly host: StoreHost;
  readonly log: Log;
}

interface Past {
  readonly name: EchoedName;
  readonly request: { readonly key: string };
}

type Play = () => Promise<unknown>;

/** Whoever is not the holder any more notes nothing. */
const lateNote = { remoteRef: 'late', nth: 99 };

const outcomes = ['succeeded', 'failed', 'released', 'unknown'] as const;

export function createEchoes({ scheduler, chance, faults, host, log }: EchoesOptions): Echoes {
  const { store, look } = host;
  const { echo } = faults.profile;
  const past = new Map<string, Past[]>();
  const claims = new Map<string, ClaimRequest>();

  function later(key: string, afterMs: number, what: string, play: (key: string) => Promise<unknown>): void {
    scheduler.after(afterMs, undefined, what, () => {
      if (faults.active) void play(key);
    });
  }

  function copy(key: string): Promise<unknown> {
    const { name, request } = chance.pick(past.get(key) as Past[]);
    faults.count('old request');
    return store[name](request as never);
  }

  /** One of every kind, in any order, until one of them has changed the record. */
  async function storm(key: string): Promise<void> {
    const base = claims.get(key);
    if (base === undefined) return;
    const record = await find(base);
    const held = record?.key ?? key;
    const plays = [...lateClaims(base, record), ...lateWords(held, record), ...lateActs(held, record)];
    for (let left = plays.length; left > 0; left -= 1) {
      const at = chance.below(left);
      const play = plays[at] as Play;
      plays[at] = plays[left - 1] as Play;
      faults.count('old request');
      await play();
      const now = await find(base);
      if (now?.fence !== record?.fence || now?.status !== record?.status) return;
    }
  }

  /** With two versions of a tool the record may be under another form of the key. */
  async function find({ key, olderKeys }: ClaimRequest): Promise<StoredRecord | undefined> {
    const own = await look(key);
    let found: StoredRecord | undefined;
    for (const form of [key, ...(own?.movedTo ?? []), ...olderKeys]) {
      const record = await look(form);
      if (record === undefined || record.movedTo !== null) continue;
      if (!record.expired && record.status !== 'released') return record;
      found ??= record;
    }
    return found;
  }

  /** Somebody who decided by an earlier look, asked, and died. */
  function lateClaims(base: ClaimRequest, record: StoredRecord | undefined): Play[] {
    const generation = (record?.generation ?? 2) - (chance.happens(0.7) ? 1 : 0);
    const own = record === undefined ? base.fingerprint : record.fingerprint;
    const prints = base.fingerprint === null ? [own] : [own, `${own}, other`];
    // Whoever comes for this record has its args, not those of whoever asked last.
    const { args, content } = record === undefined || base.fingerprint === own ? base : record;
    // Other code looks whether it landed, but does not send again what a provider may have seen.
    const isOtherCode = record !== undefined && !mayContinue(record.version, base.version);
    const purposes = isOtherCode ? (['verify'] as const) : (['rerun', 'verify'] as const);
    return purposes.flatMap((purpose) =>
      prints.map((fingerprint) => () => {
        const token = `late ${chance.below(0xffffffff)}`;
        const late = { ...base, args, content, for: purpose, fingerprint, generation, token };
        return store.claim({ ...late, toolCallId: 'late' });
      }),
    );
  }

  /** What attempts of this key may still say, and some say twice. */
  function lateWords(key: string, record: StoredRecord | undefined): Play[] {
    const { attempts, token } = log.keyLog(key);
    if (attempts.length === 0) return [];
    const last = attempts.at(-1) as Attempt;
    const anyone = chance.pick(attempts);
    const speakers = new Set([anyone, ...(last.token === token ? [last] : [])]);
    return [...speakers].flatMap((attempt) => {
      const held: Held = {
        namespace,
        key,
        token: attempt.token,
        fence: attempt.fence,
        generation: attempt.generation,
      };
      const times = { rerunWithinMs: null, inFlightForMs: 1_000 };
      const isHolder = record?.status === 'running' && attempt.token === token;
      // The holder is alive, and does all this itself: copies of its words would be lies.
      if (isHolder) return [];
      return [
        () => store.renew({ ...held, leaseMs: 1_000, inFlightForMs: 1_000, note: lateNote }),
        () => store.dispatch({ ...held, keyed: true, ...times, prepared: null }),
        () => store.clear({ ...held, ...times, crossing: true, freshKey: false, seenAt: 0 }),
        ...outcomes
          .filter((outcome) => maySay(attempt, record, outcome))
          .map(
            (outcome) => () =>
              otherwise({
                ...held,
                outcome,
                result: resultOf(attempt, outcome),
                error: null,
                keyed: false,
                found: false,
              }),
          ),
      ];
    });
  }

  function resultOf({ key, fence }: Attempt, outcome: SettleRequest['outcome']): StoredResult | null {
    const effect = log.effects.find((each) => each.key === key && each.fence === fence);
    if (outcome !== 'succeeded' || effect === undefined) return null;
    return { text: JSON.stringify({ effect: effect.id }), omitted: null, remoteRef: null };
  }

  function otherwise(request: SettleRequest): Promise<unknown> {
    faults.count('settled otherwise');
    return store.settle(request);
  }

  /** Not even a late client may lie about an open question: nothing protects against that. */
  function maySay(
    attempt: Attempt,
    record: StoredRecord | undefined,
    outcome: SettleRequest['outcome'],
  ): boolean {
    const isSettled = record === undefined || record.status === 'succeeded' || record.status === 'failed';
    if (outcome === 'succeeded') {
      const landed = log.effects.some(({ key, fence }) => key === attempt.key && fence === attempt.fence);
      return landed || isSettled;
    }
    const isOwn = record?.fence === attempt.fence && record.status === 'unknown';
    return outcome === 'unknown' || !isOwn;
  }

  /** Verdicts about what is no more as it was; and the acts that need no knowledge, now and then on what is. */
  function lateActs(key: string, record: StoredRecord | undefined): Play[] {
    const crossedBefore = record?.lastDispatchedAt == null ? 1 : record.lastDispatchedAt - 1;
    const stale = chance.happens(0.5)
      ? { fence: (record?.fence ?? 1) - 1, dispatchedAt: record?.lastDispatchedAt ?? null }
      : { fence: record?.fence ?? 0, dispatchedAt: crossedBefore };
    const fresh = { fence: record?.fence ?? 0, dispatchedAt: record?.lastDispatchedAt ?? null };
    const result = { text: '"late"', omitted: null, remoteRef: null };
    const acts: readonly Act[] = [
      { type: 'landed', result },
      { type: 'notLanded' },
      { type: 'runAgain' },
      { type: 'abandon', reason: 'late' },
      { type: 'died' },
      { type: 'forget' },
      { type: 'reopen' },
    ];
    return acts.map((act) => () => {
      const knows = act.type === 'landed' || act.type === 'notLanded' || act.type === 'died';
      const request: ResolveRequest = {
        namespace,
        key,
        seen: !knows && chance.happens(0.1) ? fresh : stale,
        decidedAt: record?.readAt ?? 0,
        act,
        token: `late ${chance.below(0xffffffff)}`,
        by: 'late',
        note: null,
        force: chance.happens(0.2),
      };
      return store.resolve(request);
    });
  }

  return {
    heard(name, request) {
      if (echo === 0 || !faults.active) return;
      const { key } = request;
      const known = past.get(key) ?? [];
      past.set(key, known);
      known.push({ name, request });
      if (name === 'claim') claims.set(key, request as ClaimRequest);
      if (chance.happens(echo)) later(key, chance.between(1, 1_500), 'an old request arrives', copy);
      if (chance.happens(echo / 4)) later(key, chance.between(1, 40_000), 'an old request arrives', copy);
      const isOver = name === 'claim' ? (request as ClaimRequest).leaseMs + 500 : 800;
      if (chance.happens(echo / 3)) later(key, chance.between(1, isOver), 'old requests arrive', storm);
    },
    pruned() {
      if (echo === 0 || !faults.active) return;
      for (const key of claims.keys())
        if (chance.happens(0.3)) later(key, chance.between(1, 400), 'old requests arrive', storm);
    },
  };
}
