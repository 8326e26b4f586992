// Events for the program around semel: typed listeners and `diagnostics_channel`. Listeners observe; nothing that they do
// or throw reaches the path of a call.

import { type Channel, channel as channelNamed } from 'node:diagnostics_channel';
import { describeThrown } from '../core/contract/classify.ts';
import type { Outcome } from '../core/contract/words.ts';
import { escapeInvisible } from '../core/visible.ts';

interface RecordRef {
  readonly namespace: string;
  readonly contract: string;
  readonly key: string;
  readonly fence: number;
}

export interface SemelEvents {
  claimed: RecordRef & { readonly attempt: number };
  replayed: RecordRef & { readonly settledAt: number | null };
  busy: RecordRef & { readonly owner: string; readonly leaseLeftMs: number };
  conflict: RecordRef;
  dispatched: RecordRef;
  settled: RecordRef & { readonly outcome: Outcome };
  released: RecordRef & { readonly error: string | undefined };
  /** A record is in doubt now. */
  doubt: RecordRef & { readonly error: string | undefined };
  takeover: RecordRef & { readonly from: 'lapsed' | 'doubt' };
  /** An attempt that no longer holds the key reported its outcome, which was kept as evidence. */
  fenced: RecordRef & { readonly outcome: Outcome };
  lateNews: RecordRef & { readonly outcome: Outcome };
  /** Two attempts landed at a target that does not honour keys. */
  duplicate: RecordRef;
  /** An attempt landed that the record says was refused or given up. */
  contradiction: RecordRef;
  leaseLost: RecordRef;
  resolved: RecordRef & { readonly act: string; readonly by: string };
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
  /** Without listeners, the event object need not be created. */
  hasListeners(name: EventName): boolean;
}

export function createEvents(): EventHub {
  const topics = Object.fromEntries(
    eventNames.map((name) => [
      name,
      { listeners: new Set<(event: never) => void>(), channel: channelNamed(`semel:${name}`) },
    ]),
  ) as Record<EventName, { listeners: Set<(event: never) => void>; channel: Channel }>;

  return {
    on(name, listener) {
      const { listeners } = topics[name];
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    hasListeners(name) {
      const topic = topics[name];
      return topic.listeners.size > 0 || topic.channel.hasSubscribers;
    },
    emit(name, event) {
      const { listeners, channel } = topics[name];
      if (channel.hasSubscribers) channel.publish(event);
      for (const listener of listeners) {
        try {
          const later: unknown = listener(event as never);
          if (later instanceof Promise) later.catch((error: unknown) => warnAboutListener(name, error));
        } catch (error) {
          warnAboutListener(name, error);
        }
      }
    },
  };
}

function warnAboutListener(name: EventName, error: unknown): void {
  process.emitWarning(`A semel listener for "${name}" threw: ${escapeInvisible(describeThrown(error))}`);
}
