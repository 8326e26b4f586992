// Who asks: random calls on few keys, by holders, by zombies that lost their key long ago, and by operators.

import type {
  Act,
  ClaimAnswer,
  ClaimRequest,
  Held,
  Imported,
  Note,
  StoredRecord,
  StoredResult,
} from '../../../src/store/store.ts';
import type { Chance } from '../chance.ts';
import { type Call, keysOf } from './calls.ts';

export const namespace = 'shop';

/** `b` had another form once. */
const families = [['mail/a'], ['mail/b'], ['mail/b', 'mail/b0'], ['mail/b0']] as const;
export const allKeys = ['mail/a', 'mail/b', 'mail/b0'] as const;

/** Near the age at which a decision is too old, and far from it. */
const spans = [0, 40, 700, 1_990, 2_500, 9_000, 60_000, 3_600_000] as const;
const leases = [30, 600, 2_100, 5_000, 60_000] as const;

export interface People {
  /** What is asked next. */
  next(): Call;
  /** Asked again after no answer came, or out of habit. */
  again(): Call | undefined;
  heard(call: Call, answer: unknown): void;
}

export function people(chance: Chance, periodEndsAt: number): People {
  const held: Held[] = [];
  const looked: StoredRecord[] = [];
  const asked: Call[] = [];
  let tokens = 0;

  return {
    next() {
      const call = chance.happens(0.1) ? (asked.length > 0 && chance.pick(asked)) || made() : made();
      asked.push(call);
      return call;
    },
    again: () => asked.at(-1),
    heard(call, answer) {
      if (answer === null || typeof answer !== 'object') return;
      const record = 'record' in answer ? (answer as { record?: StoredRecord }).record : answer;
      if (record !== undefined) looked.push(record as StoredRecord);
      if (call.name !== 'claim' || !(answer as ClaimAnswer).won) return;
      const { key, fence, generation } = record as StoredRecord;
      held.push({ namespace, key, token: call.request.token, fence, generation });
    },
  };

  function made(): Call {
    const kind = chance.below(100);
    if (kind < 36 || held.length === 0) return { name: 'claim', request: claimed() };
    if (kind < 40) return { name: 'look', request: { ...claimed(), olderKeys: [] } };
    if (kind < 44) return { name: 'read', request: { namespace, key: chance.pick(allKeys) } };
    if (kind < 52 && looked.length > 0) return resolved(recent(looked));
    const about = holding();
    if (kind < 60)
      return {
        name: 'renew',
        request: {
          ...about,
          leaseMs: chance.pick(leases),
          inFlightForMs: chance.pick(spans),
          ...(chance.happens(0.4) ? { note: noted() } : {}),
        },
      };
    const inFlightForMs = chance.pick(spans);
    const rerunWithinMs = chance.happens(0.5) ? null : chance.pick(spans);
    if (kind < 72)
      return {
        name: 'dispatch',
        request: {
          ...about,
          keyed: chance.happens(0.8),
          prepared: chance.happens(0.2) ? '"p"' : null,
          rerunWithinMs,
          inFlightForMs,
        },
      };
    if (kind < 80) {
      const seenAt = looked.length > 0 ? recent(looked).readAt : Number.MAX_SAFE_INTEGER;
      const crossing = chance.happens(0.5);
      const freshKey = chance.happens(0.3);
      return {
        name: 'clear',
        request: { ...about, crossing, seenAt, freshKey, rerunWithinMs, inFlightForMs },
      };
    }
    const outcome = chance.pick(['succeeded', 'succeeded', 'failed', 'released', 'unknown'] as const);
    return {
      name: 'settle',
      request: {
        ...about,
        outcome,
        result: outcome === 'succeeded' || chance.happens(0.2) ? result() : null,
        error: outcome === 'succeeded' ? null : { code: 'FAILED', message: outcome, retriable: false },
        keyed: chance.happens(0.3),
        found: chance.happens(0.2),
      },
    };
  }

  function noted(): Note {
    return { remoteRef: chance.pick(['re_1', 're_2', null]), nth: chance.between(1, 3) };
  }

  /** Short, and long enough to be kept apart by stores that do so, or to be left out of what stays for good. */
  function result(): StoredResult {
    const text = chance.pick([`"${tokens}"`, `"${'é'.repeat(70)}"`, `"${'x'.repeat(150)}"`, null]);
    const remoteRef = chance.pick([null, null, 're_1']);
    return { text, omitted: text === null ? 'too large' : null, remoteRef };
  }

  function recent<T>(items: readonly T[]): T {
    return chance.happens(0.7) ? (items.at(-1) as T) : chance.pick(items);
  }

  /** The last claims are asked about most; one whose answer never came has neither fence nor generation. */
  function holding(): Held {
    const claim = chance.happens(0.1) ? asked.findLast(({ name }) => name === 'claim') : undefined;
    if (claim?.name === 'claim')
      return {
        namespace,
        key: chance.pick(keysOf(claim)),
        token: claim.request.token,
        fence: 0,
        generation: 0,
      };
    const [last] = chance.happens(0.6) ? held.slice(-1) : [];
    return last ?? chance.pick(held);
  }

  function claimed(): ClaimRequest {
    const [key, ...olderKeys] = chance.pick(families);
    const generation = chance.happens(0.1) && looked.length > 0 ? recent(looked).generation : null;
    return {
      namespace,
      key,
      olderKeys,
      token: newToken(),
      fingerprint: chance.pick([null, null, null, 'x']),
      for: chance.pick(['execute', 'execute', 'rerun', 'verify']),
      generation,
      crossing: chance.happens(0.4),
      leaseMs: chance.pick(leases),
      rerunWithinMs: chance.happens(0.5) ? null : chance.pick(spans),
      maxCrashes: chance.pick([1, 2, 10]),
      inFlightForMs: chance.pick(spans),
      networkMs: chance.pick([0, 500]),
      version: '1',
      effect: chance.pick(['write-idempotent', 'write-non-idempotent']),
      keyed: chance.happens(0.4),
      retention: {
        windowMs: chance.pick(spans),
        failureWindowMs: chance.pick(spans),
        keep: chance.happens(0.15),
        periodEndsAt: chance.pick([null, null, null, periodEndsAt]),
      },
      owner: chance.pick(['ada', 'bob']),
      args: chance.pick(['{}', '{"to":"zoë"}', null]),
      content: chance.pick([null, 'digest']),
      notAfter: chance.pick([null, null, periodEndsAt]),
      conversation: chance.pick([null, 'c1', 'c2']),
      turn: chance.pick([null, 'u1']),
      toolCallId: null,
      run: null,
      again: chance.pick([null, null, 'asked for']),
      caller: chance.pick([null, null, null, 'ann', 'bob']),
      share: chance.happens(0.2),
      ...(chance.happens(0.05) ? { imported: imported() } : {}),
    };
  }

  function imported(): Imported {
    const fence = chance.pick([1, 7]);
    const firstDispatchedAt = chance.pick([null, periodEndsAt - 86_400_000]);
    return {
      fence,
      providerKeyFence: fence,
      firstDispatchedAt,
      lastDispatchedAt: firstDispatchedAt,
      prepared: chance.pick([null, '"before"']),
    };
  }

  /** As they usually are, and of another form. */
  function newToken(): string {
    tokens += 1;
    return tokens % 2 === 0 ? tokens.toString(16).padStart(16, '0') : `t${tokens}`;
  }

  function resolved(record: StoredRecord): Call {
    const acts: readonly Act[] = [
      { type: 'landed', result: result() },
      { type: 'notLanded' },
      { type: 'notLanded' },
      { type: 'runAgain' },
      { type: 'abandon', reason: 'tired' },
      { type: 'died' },
      { type: 'forget' },
      { type: 'reopen' },
    ];
    return {
      name: 'resolve',
      request: {
        namespace,
        key: record.key,
        seen: { fence: record.fence, dispatchedAt: record.lastDispatchedAt },
        decidedAt: record.readAt,
        act: chance.pick(acts),
        token: newToken(),
        by: 'operator',
        note: null,
        force: chance.happens(0.3),
      },
    };
  }
}
