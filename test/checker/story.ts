// Histories told by hand, one line per thing that happened; time passes by itself.

import type { Outcome } from '../../src/core/contract/words.ts';
import type { EventType, StoreEvent } from '../../src/store/store.ts';
import type { CheckedRecord, EffectEntry, Logs, Policy, Told, WorkEntry } from '../support/checker/index.ts';

const contract = 'mail.send';
export const theKey = `${contract}/=order-1`;

interface Where {
  readonly namespace?: string;
  readonly key?: string;
  readonly generation?: number;
  readonly worker?: string;
}

export interface Story {
  starts(call: string, where?: Where): void;
  claims(call: string, fence: number, where?: Where): void;
  /** An effect lands; answers its number. */
  lands(fence: number | null, more?: Where & { providerKey?: string; at?: number }): number;
  settles(fence: number, outcome: Outcome, where?: Where): void;
  tells(call: string, told: Told, more?: Partial<Extract<WorkEntry, { kind: 'ended' }>>): void;
  /** Starts, claims, lands, settles and tells: an ordinary call. */
  executes(call: string, fence: number, where?: Where): number;
  notes(type: EventType, fence: number, detail?: StoreEvent['detail'], where?: Where): void;
  dies(worker: string): void;
  /** What the store holds at the end. */
  leaves(status: CheckedRecord['status'], fence: number, more?: Partial<CheckedRecord>): void;
  logs(options?: Partial<Logs> & { policy?: Policy }): Logs;
}

export function story(): Story {
  const work: WorkEntry[] = [];
  const records: CheckedRecord[] = [];
  const events: StoreEvent[] = [];
  const effects: EffectEntry[] = [];
  let clock = 1_000;
  const now = () => {
    clock += 10;
    return clock;
  };
  const line = ({ namespace = 'shop', key = theKey, worker = 'w1' }: Where = {}) => ({
    at: now(),
    worker,
    namespace,
    intent: key,
  });

  const told: Story = {
    starts: (call, where) => void work.push({ kind: 'started', ...line(where), call, contract }),
    claims(call, fence, where = {}) {
      const { key = theKey, generation = 1 } = where;
      work.push({ kind: 'claimed', ...line(where), call, key, generation, fence });
    },
    lands(fence, more = {}) {
      const { namespace = 'shop', key = theKey, providerKey = null, at = now() } = more;
      const seq = effects.length + 1;
      effects.push({ seq, at, namespace, intent: key, target: 'mail', fence, providerKey });
      return seq;
    },
    settles(fence, outcome, where = {}) {
      const { key = theKey, generation = 1 } = where;
      work.push({ kind: 'settled', ...line(where), key, generation, fence, outcome });
    },
    tells(call, what, more = {}) {
      const { namespace, key = theKey, worker, ...given } = more;
      work.push({
        kind: 'ended',
        ...line({
          ...(namespace === undefined ? {} : { namespace }),
          ...(key === null ? {} : { key }),
          ...(worker === undefined ? {} : { worker }),
        }),
        call,
        told: what,
        code: null,
        key,
        generation: 1,
        fence: null,
        value: null,
        effect: null,
        ...given,
      });
    },
    executes(call, fence, where) {
      told.starts(call, where);
      told.claims(call, fence, where);
      const effect = told.lands(fence, where);
      told.settles(fence, 'succeeded', where);
      told.tells(call, 'executed', { ...where, fence, value: 'v1', effect });
      return effect;
    },
    notes(type, fence, detail = {}, { namespace = 'shop', key = theKey, generation = 1 } = {}) {
      events.push({ at: now(), namespace, key, generation, fence, type, detail });
    },
    dies: (worker) => void work.push({ kind: 'died', at: now(), worker }),
    leaves(status, fence, more = {}) {
      records.push({
        namespace: 'shop',
        key: theKey,
        generation: 1,
        fence,
        status,
        doubtFence: null,
        lapsed: false,
        inDoubt: status === 'unknown',
        ...more,
      });
    },
    logs: ({ policy = { keyed: false, repeats: false }, ...more } = {}) => ({
      work,
      records,
      events,
      effects,
      policies: { [contract]: policy },
      ...more,
    }),
  };
  return told;
}
