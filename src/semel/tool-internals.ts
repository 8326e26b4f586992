// What adapters, guards, jobs and semel/testing reach behind a tool: its warnings, its name, the lease of an open attempt, and
// a clone of it as another process would have it. Not public; it may change in any release. Symbols are shared by name, so that two loaded copies of semel agree.

import type { Clock } from '../core/clock.ts';
import type { Store } from '../store/store.ts';
import type { ToolFunction } from './definition.ts';
import type { Semel } from './semel.ts';
import type { AnyDefinition } from './toolbox.ts';

export const warningKey: unique symbol = Symbol.for('semel.warning') as never;
export const forgetKey: unique symbol = Symbol.for('semel.forget') as never;
export const externalKey: unique symbol = Symbol.for('semel.external') as never;
export const cloneKey: unique symbol = Symbol.for('semel.rebuild') as never;
export const leaveKey: unique symbol = Symbol.for('semel.leave') as never;

/** Warns the program once: a framework shows a tool's answers only to the model. */
export function warnerOf(tool: object): ((message: string) => void) | undefined {
  return (tool as { [warningKey]?: (message: string) => void })[warningKey];
}

/** Frees the tool's name; calls that have begun go on. Keeps names that strangers make up from filling the memory. */
export function forgetTool(tool: object): void {
  (tool as { [forgetKey]?: () => void })[forgetKey]?.();
}

/** Says that `run` executes nothing by itself: a framework does, within a call of its own. */
export function markExternal(tool: object): void {
  (tool as { [externalKey]?: () => void })[externalKey]?.();
}

/**
 * Leaves the claim of an open attempt to its lease, which ends after this time; false: the claim is not held any more. The
 * process must exit without closing its Semel, which would release the claim.
 */
export async function leaveClaim(attempt: object, leaseMs: number): Promise<boolean> {
  return (
    (await (attempt as { [leaveKey]?: (leaseMs: number) => Promise<boolean> })[leaveKey]?.(leaseMs)) ?? false
  );
}

/** What differs in the other process. */
export interface CloneChanges {
  readonly store?: (store: Store) => Store;
  readonly clock?: (clock: Clock) => Clock;
  readonly definition?: (definition: AnyDefinition) => AnyDefinition;
}

export interface Clone {
  readonly tool: ToolFunction<unknown, unknown>;
  /** Closing it leaves the store open: the store belongs to the original. */
  readonly semel: Semel;
}

export type CloneTool = (change: CloneChanges) => Clone;

/** Of what `semel.tool` made, or of a framework's tool that `setCloner` knows. */
export function clonerOf(tool: unknown): CloneTool | undefined {
  return (tool as { [cloneKey]?: CloneTool } | null | undefined)?.[cloneKey];
}

export function setCloner(tool: object, clone: CloneTool): void {
  Object.defineProperty(tool, cloneKey, { value: clone });
}

/** The store with some of its methods replaced; works for class instances too. */
export function overrideStore(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const replacement: unknown = Reflect.get(methods, name);
      if (replacement !== undefined) return replacement;
      const method: unknown = Reflect.get(target, name);
      return typeof method === 'function' ? method.bind(target) : method;
    },
  });
}
