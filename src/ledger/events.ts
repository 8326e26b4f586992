// What semel tells the program around it, as it happens: typed listeners and `diagnostics_channel`. Listeners
// observe; nothing that they do or throw reaches the path of a call.

import { type Channel, channel } from 'node:diagnostics_channel';
import { describeThrown } from '../core/contract/classify.ts';
import type { Outcome } from '../core/contract/words.ts';

interface About {
  readonly namespace: string;
  readonly contract: string;
  readonly key: string;
  readonly fence: number;
}

export interface SemelEvents {
  claimed: About & { readonly attempt: number };
  replayed: About & { readonly settledAt: number | null };
  busy: About & { readonly owner: string; readonly leaseLeftMs: number };
  conflict: About;
  dispatched: About;
  settled: About & { readonly outcome: Outcome };
  released: About & { readonly error: string | undefined };
  /** A record is in doubt now. */
  doubt: About & { readonly error: string | undefined };
  takeover: About & { readonly from: 'lapsed' | 'doubt' };
  /** News from an attempt that no longer holds the key was kept as evidence. */
  fenced: About & { readonly outcome: Outcome };
  lateNews: About & { readonly outcome: Outcome };
  /** Two attempts landed at a target that does not honour keys. */
  duplicate: About;
  /** An attempt landed that the record says was refused or given up. */
  contradiction: About;
  leaseLost: About;
  resolved: About & { readonly act: string; readonly by: string };
  storeDown: { readonly error: string };
  storeUp: { readonly downForMs: number };
}

export type EventName = keyof SemelEvents;

export const eventNames: readonly EventName[] = [
  'claimed',
  'replayed',
  'busy',
  'conflict',
  'dispatched',
  'settled',
  'released',
  'doubt',
  'takeover',
  'fenced',
  'lateNews',
  'duplicate',
  'contradiction',
  'leaseLost',
  'resolved',
  'storeDown',
  'storeUp',
];

export interface EventHub {
  on<Name extends EventName>(name: Name, listener: (event: SemelEvents[Name]) => void): () => void;
  emit<Name extends EventName>(name: Name, event: SemelEvents[Name]): void;
  /** Somebody listens: where nobody does, no event need be made. */
  isHeard(name: EventName): boolean;
}

export function createEvents(): EventHub {
  const hearers = Object.fromEntries(
    eventNames.map((name) => [
      name,
      { listeners: new Set<(event: never) => void>(), channel: channel(`semel:${name}`) },
    ]),
  ) as Record<EventName, { listeners: Set<(event: never) => void>; channel: Channel }>;

  return {
    on(name, listener) {
      const { listeners } = hearers[name];
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    isHeard(name) {
      const hearer = hearers[name];
      return hearer.listeners.size > 0 || hearer.channel.hasSubscribers;
    },
    emit(name, event) {
      const { listeners, channel: published } = hearers[name];
      if (published.hasSubscribers) published.publish(event);
      for (const listener of listeners) {
        try {
          const later: unknown = listener(event as never);
          if (later instanceof Promise) later.catch((error: unknown) => complain(name, error));
        } catch (error) {
          complain(name, error);
        }
      }
    },
  };
}

function complain(name: EventName, error: unknown): void {
  process.emitWarning(`A semel listener for "${name}" threw: ${describeThrown(error)}`);
}
