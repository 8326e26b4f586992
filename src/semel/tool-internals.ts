// What adapters, guards, patterns and semel/testing reach behind a tool or a Semel instance: warnings, a name, the lease of an
// open attempt, a clone as another process would have it, the path of its calls. Not public; it may change in any release. Symbols are shared by name, so that two loaded copies of semel agree.

import type { Call, Pipeline, Result, Tool } from '../call/index.ts';
import type { Clock, Random } from '../core/clock.ts';
import type { Ledger } from '../ledger/index.ts';
import type { Store } from '../store/store.ts';
import type { Begun } from './begin.ts';
import type { CallOptions, ToolFunction } from './definition.ts';
import type { Semel } from './semel.ts';
import type { AnyDefinition, KnownTool } from './toolbox.ts';

export const warningKey: unique symbol = Symbol.for('semel.warning') as never;
export const forgetKey: unique symbol = Symbol.for('semel.forget') as never;
export const externalKey: unique symbol = Symbol.for('semel.external') as never;
export const cloneKey: unique symbol = Symbol.for('semel.rebuild') as never;
export const leaveKey: unique symbol = Symbol.for('semel.leave') as never;
export const enterKey: unique symbol = Symbol.for('semel.enter') as never;
export const ensureKey: unique symbol = Symbol.for('semel.ensure') as never;
export const engineKey: unique symbol = Symbol.for('semel.engine') as never;
export const knownKey: unique symbol = Symbol.for('semel.known') as never;

/** What a pattern needs of a Semel instance besides its tools. */
export interface Engine {
  readonly namespace: string;
  readonly store: Store;
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly random: Random;
  readonly warn: (message: string) => void;
  /** Opens the store, and says what is to be warned of. */
  open(): Promise<unknown>;
  /** One call of a recorded tool, with its key. Claims nothing. */
  makeCall(
    tool: Pick<ToolFunction<unknown, unknown>, 'contract'>,
    args: unknown,
    options: CallOptions,
    /** The tool as this call wants it, under the same key. */
    onTerms?: (tool: Tool) => Tool,
  ): Promise<Call>;
  /** Like `semel.begin`, for an attempt that this process executes by itself: the claim ends with the process. */
  beginHere<Args, Value>(
    tool: ToolFunction<Args, Value>,
    args: Args,
    options: CallOptions,
  ): Promise<Begun<Value>>;
  /**
   * What is on record of a call that cannot be made any more, by its args as they are. Runs nothing. Undefined: nothing was found
   * under the key that they have; only a key of the caller's own makes sure that there is nothing.
   */
  findEarlier(
    tool: Pick<ToolFunction<unknown, unknown>, 'contract'>,
    args: unknown,
    options: CallOptions,
  ): Promise<Result | undefined>;
  /** Ends the claim on a key whose process is proven dead. True: its record has changed. */
  endIfDead(key: string): Promise<boolean>;
  find(contract: string): KnownTool | undefined;
  /** Every tool, by its current name. */
  listTools(): readonly string[];
  /** From now on every call of this instance runs inside `wrap`, which must return what `run` gives. */
  wrapCalls(wrap: (call: Call, run: () => Result | Promise<Result>) => Result | Promise<Result>): void;
  /** The same path for calls on another store; no call of this instance shares an execution or a cache with it. */
  pipelineOn(store: Store): { readonly pipeline: Pipeline; readonly ledger: Ledger };
}

export function engineOf(semel: object): Engine {
  return (semel as { [engineKey]: Engine })[engineKey];
}

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
 * attempt is over then, and is not settled.
 */
export async function leaveClaim(attempt: object, leaseMs: number): Promise<boolean> {
  return (
    (await (attempt as { [leaveKey]?: (leaseMs: number) => Promise<boolean> })[leaveKey]?.(leaseMs)) ?? false
  );
}

/** Renews the lease of an open attempt if little of it is left; throws if it is lost. A machine that slept stops timers too. */
export async function ensureLease(attempt: object): Promise<void> {
  await (attempt as { [ensureKey]?: () => Promise<void> })[ensureKey]?.();
}

/** Runs work as part of an open attempt: its calls may still be made while this Semel closes, and must not repeat the attempt's own. */
export function enterAttempt<T>(attempt: object, work: () => T): T {
  const enter = (attempt as { [enterKey]?: (work: () => T) => T })[enterKey];
  return enter === undefined ? work() : enter(work);
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

/** Clones what `semel.tool` made, or a framework's tool that `setCloner` knows. */
export function clonerOf(tool: unknown): CloneTool | undefined {
  return (tool as { [cloneKey]?: CloneTool } | null | undefined)?.[cloneKey];
}

export function setCloner(tool: object, clone: CloneTool): void {
  Object.defineProperty(tool, cloneKey, { value: clone });
}

/** The store with some of its methods replaced; works for class instances too. */
export function overrideStore(store: Store, methods: Partial<Store>): Store {
  const bound = new Map<unknown, unknown>();
  return new Proxy(store, {
    get(target, name) {
      const replacement: unknown = Reflect.get(methods, name);
      if (replacement !== undefined) return replacement;
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      if (!bound.has(method)) bound.set(method, method.bind(target));
      return bound.get(method);
    },
  });
}
