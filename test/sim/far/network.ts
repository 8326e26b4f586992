// Between one client and the far end: exchanges that come late, twice, or never, and answers that do not arrive. Keeps
// what was sent, what was done with it, and what the client heard.

import type { RemoteBackend, Removal, Swap } from '../../../src/store/remote/backend.ts';
import type { Exchanged, RemoteMemoryBackend } from '../../stores/remote-memory-backend.ts';
import type { Chance } from '../chance.ts';
import type { Owner, Scheduler } from '../scheduler.ts';

export interface Weather {
  readonly lost: number;
  readonly twice: number;
  readonly late: number;
  /** Shortest and longest ordinary way, there or back, in milliseconds. */
  readonly way: readonly [number, number];
}

/** What a client believes when it decides. */
export interface Belief {
  readonly steady: boolean;
  readonly floor: number;
}

export interface Sent {
  readonly client: string;
  readonly swaps: readonly Swap[];
  readonly belief: Belief;
  /** Length of the journal when it was sent. */
  readonly since: number;
  /** The place in the journal of the copy whose answer was heard. */
  heard: number | undefined;
}

export type Entry =
  | { readonly type: 'exchange'; readonly sent: Sent; readonly reply: Exchanged }
  | {
      readonly type: 'removal';
      readonly taken: readonly Removal[];
      readonly dueAt: number;
      readonly steady: boolean;
    };

export interface Journal {
  readonly entries: Entry[];
  /** The exchange whose answer is being heard in this event. */
  hearing: number | undefined;
}

/** No answer came; `all`: the driver cannot tell that it was one piece's fault. */
export class Silence extends Error {
  readonly concernsAll: boolean;
  constructor(concernsAll: boolean) {
    super('no answer');
    this.concernsAll = concernsAll;
  }
}

const timeoutMs = 10_000;

export interface Wire {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly weather: Weather;
  readonly far: RemoteMemoryBackend;
  readonly storeNow: () => number;
  readonly journal: Journal;
}

export function connect(
  { scheduler, chance, weather, far, storeNow, journal }: Wire,
  client: Owner,
  belief: { now(): Belief; heard(storeNow: number, floor: number): void },
): RemoteBackend {
  /** `arrive` does it at the far end, perhaps more than once; `hear` is told of the first answer that comes back. */
  function send<T>(label: string, arrive: () => T, hear: (answer: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      let isOver = false;
      const silence = () => {
        isOver = true;
        journal.hearing = undefined;
        reject(new Silence(chance.happens(0.5)));
      };
      scheduler.after(timeoutMs, client, `${client.name} gives ${label} up`, () => !isOver && silence());
      const copies = chance.happens(weather.twice) ? 2 : 1;
      for (let copy = 1; copy <= copies; copy += 1) {
        if (chance.happens(weather.lost)) continue;
        const isLate = copy > 1 || chance.happens(weather.late);
        const wayMs = chance.between(...weather.way) + (isLate ? chance.pick([50, 1_800, 6_000, 70_000]) : 0);
        scheduler.after(wayMs, undefined, `${label} arrives`, () => {
          journal.hearing = undefined;
          const answer = arrive();
          if (chance.happens(weather.lost)) return;
          const backMs =
            chance.between(...weather.way) + (chance.happens(weather.late) ? chance.between(1, 9_000) : 0);
          scheduler.after(backMs, client, `${client.name} hears of ${label}`, () => {
            if (isOver) return;
            isOver = true;
            journal.hearing = undefined;
            hear(answer);
            resolve(answer);
          });
        });
      }
    });
  }

  let dueAt = 0;
  return {
    ...far,
    now: () => send('now', storeNow, (now) => belief.heard(now, 0)),
    exchange(swaps) {
      const sent: Sent = {
        client: client.name,
        swaps,
        belief: belief.now(),
        since: journal.entries.length,
        heard: undefined,
      };
      const arrive = () => {
        const reply = far.swap(swaps);
        journal.entries.push({ type: 'exchange', sent, reply });
        return { reply, place: journal.entries.length - 1 };
      };
      return send('exchange', arrive, ({ reply, place }) => {
        sent.heard = place;
        journal.hearing = place;
        belief.heard(reply.now, reply.floor);
      }).then(({ reply }) => reply);
    },
    due: (limit) =>
      send(
        'due',
        () => far.find(limit),
        ({ now }) => {
          belief.heard(now, 0);
          dueAt = now;
        },
      ),
    remove(removals) {
      const { steady } = belief.now();
      const decidedAt = dueAt;
      const arrive = () => {
        const taken = far.take(removals);
        journal.entries.push({ type: 'removal', taken, dueAt: decidedAt, steady });
        return taken.length;
      };
      return send('remove', arrive, () => {});
    },
    judge: (error) => ({ error, concernsAll: !(error instanceof Silence) || error.concernsAll }),
  };
}
