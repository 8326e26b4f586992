// Internal to semel/testing: builds a tool once more on the same store, as another process would have it, so that
// a test can play its death and its restart. No part of the promise; it may change in any release.

import type { Clock } from '../core/clock.ts';
import type { Store } from '../store/store.ts';
import type { ToolFunction } from './definition.ts';
import type { Semel } from './semel.ts';
import type { AnyDefinition } from './toolbox.ts';

/** By name, so that a copy of semel that was loaded twice still finds it. */
export const rebuildKey: unique symbol = Symbol.for('semel.rebuild') as never;

/** What is different in the other process; the rest is as it was. */
export interface Rebuilding {
  readonly store?: (store: Store) => Store;
  readonly clock?: (clock: Clock) => Clock;
  readonly definition?: (definition: AnyDefinition) => AnyDefinition;
}

export interface Sibling {
  readonly tool: ToolFunction<unknown, unknown>;
  /** Closing it leaves the store open: it belongs to the first. */
  readonly semel: Semel;
}

export type Rebuild = (change: Rebuilding) => Sibling;

export function rebuildOf(tool: unknown): Rebuild | undefined {
  return typeof tool === 'function' ? (tool as { [rebuildKey]?: Rebuild })[rebuildKey] : undefined;
}

/** The store with some of its methods played by others; works for class instances too. */
export function playedBy(store: Store, players: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const player: unknown = Reflect.get(players, name);
      if (player !== undefined) return player;
      const method: unknown = Reflect.get(target, name);
      return typeof method === 'function' ? method.bind(target) : method;
    },
  });
}
