// The options of `createSemel` and `once`. Refuses unknown ones.

import type { Clock, Random } from '../core/clock.ts';
import type { Via } from '../core/contract/classify.ts';
import { type ContractDefaults, defineContract, type OnDoubt } from '../core/contract/contract.ts';
import type { Duration } from '../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import type { Per } from '../core/contract/period.ts';
import type { Provider } from '../core/contract/provider.ts';
import { SemelError } from '../core/errors.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import { callFields, noOptions } from './calls/call-identity.ts';
import type { CallOptions, Classify } from './definition.ts';
import type { InstanceMode } from './place/mode.ts';
import type { StoreChoice } from './place/store-choice.ts';

export interface SemelOptions {
  /** A store, a database handle, or a URL: `sqlite:path`, `memory:`. @default SEMEL_STORE, otherwise the user's default ledger */
  readonly store?: StoreChoice;
  /** The tenant or application. @default SEMEL_NAMESPACE, otherwise the application's package name */
  readonly namespace?: string;
  /**
   * `observe` runs every call as before, and records what semel would have done. `dev` and `off` are for development and tests
   * (see `InstanceMode`). @default SEMEL_MODE, otherwise 'enforce'
   */
  readonly mode?: InstanceMode;
  /** `rerun` gives up the guarantee. @default 'hold' */
  readonly onDoubt?: OnDoubt;
  readonly defaults?: Omit<ContractDefaults, 'mode' | 'onDoubt' | 'verifyAfter'>;
  readonly limits?: Partial<Limits>;
  /** Settled records kept in this process; `false`: none. */
  readonly cache?: false | { readonly maxBytes?: number; readonly maxAge?: Duration };
  /** Permissions that every call of this process has. */
  readonly permissions?: readonly string[];
  /** Whether `read` and `write-idempotent` may run while the store is unavailable. @default true */
  readonly unguarded?: boolean;
  /** Whether to remove expired records in the background. @default true */
  readonly prune?: boolean;
  /** The name under which this process holds claims, for people. @default host and process id */
  readonly owner?: string;
  /** Where warnings go. @default process.emitWarning */
  readonly onWarning?: (message: string) => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

export interface Limits {
  /** @default 1 MiB */
  readonly resultBytes: number;
  /** @default 1 MiB */
  readonly argsBytes: number;
  /** Larger args are not stored; then only the caller can run the call again. @default 64 KiB */
  readonly storedArgsBytes: number;
  /** @default 64 */
  readonly depth: number;
}

export interface OnceOptions<Id = unknown, Value = unknown> extends CallOptions {
  /** @default 'ever' */
  readonly per?: Per;
  /** Fields of the id that may be worded differently. */
  readonly content?: readonly string[];
  readonly window?: Duration;
  readonly failureWindow?: Duration;
  readonly lease?: Duration;
  readonly timeout?: Duration | 'none';
  readonly ifBusy?: 'wait' | 'fail';
  /** The target honours a key. */
  readonly provider?: Provider;
  /** Asks the target whether an earlier attempt landed. */
  readonly verify?: (id: Id, ctx: VerifyContext) => Verification<Value> | Promise<Verification<Value>>;
  /** What an error of the effect's own request means: `oneRequest`, a table by code, or a function. */
  readonly classify?: Classify;
  /** All requests of the effect go through `ctx.fetch`. */
  readonly via?: Via;
  /** Whether the record answers every caller. @default false */
  readonly share?: boolean;
}

/** What `once` says of its contract. */
export type OnceTerms = Omit<OnceOptions, keyof CallOptions>;

export const semelFields: ReadonlySet<string> = fieldNames<SemelOptions>({
  store: true,
  namespace: true,
  mode: true,
  onDoubt: true,
  defaults: true,
  limits: true,
  cache: true,
  permissions: true,
  unguarded: true,
  prune: true,
  owner: true,
  onWarning: true,
  clock: true,
  random: true,
});
const knownLimits = fieldNames<Limits>({
  resultBytes: true,
  argsBytes: true,
  storedArgsBytes: true,
  depth: true,
});
const knownCache = fieldNames<{ maxBytes: number; maxAge: Duration }>({ maxBytes: true, maxAge: true });
const knownDefaults = fieldNames<Omit<ContractDefaults, 'mode' | 'onDoubt' | 'verifyAfter'>>({
  lease: true,
  timeout: true,
  ifBusy: true,
});
const ownOfOnce = fieldNames<OnceTerms>({
  per: true,
  window: true,
  failureWindow: true,
  lease: true,
  timeout: true,
  ifBusy: true,
  content: true,
  provider: true,
  verify: true,
  classify: true,
  via: true,
  share: true,
});
const knownOnce = new Set([...callFields, ...ownOfOnce]);

/** A misspelt option would silently have no effect. */
export function checkOptions(given: SemelOptions): void {
  if (typeof given !== 'object' || given === null)
    throw new SemelError('CONTRACT_INVALID', 'createSemel takes an object.', {
      path: 'options',
      next: "Write createSemel({ store: 'sqlite:path/to/ledger.db' }).",
    });
  const { limits, cache, defaults, ...options } = given;
  checkKnown('createSemel', options, semelFields);
  checkKnown('createSemel, limits', limits ?? {}, knownLimits);
  if (cache !== undefined && cache !== false && (typeof cache !== 'object' || cache === null))
    throw new SemelError('CONTRACT_INVALID', '`cache` must be false or an object.', {
      path: 'cache',
      next: "Leave it out to use the default, or write cache: { maxAge: '5s' }.",
    });
  checkKnown('createSemel, cache', cache || {}, knownCache);
  checkKnown('createSemel, defaults', defaults ?? {}, knownDefaults);
}

export function checkOnceOptions(options: OnceOptions): void {
  checkKnown('The options of once', options, knownOnce, 'INVALID_ARGS');
}

/** Options in the place of the id would be an id: without effect as options, and once ever instead of once per id. */
export function checkOnceId(name: string, id: unknown): void {
  if (!isOnceTerms(id)) return;
  const fields = Object.keys(id).map((field) => `\`${field}\``);
  throw new SemelError(
    'INVALID_ARGS',
    `once(${JSON.stringify(name)}, …): the second argument is the id, and this one holds options only (${fields.join(', ')}).`,
    { path: 'id', next: `Pass the id first: once(${JSON.stringify(name)}, id, options, effect).` },
  );
}

/** Whether it would be valid as options. `{ provider: 'acme' }` is not: there a provider is an object. */
function isOnceTerms(id: unknown): id is object {
  if (typeof id !== 'object' || id === null) return false;
  const fields = Object.keys(id);
  if (fields.length === 0 || !fields.every((field) => ownOfOnce.has(field))) return false;
  const terms = { per: 'ever', ...id, name: 'once', effect: 'write-non-idempotent' } as const;
  try {
    defineContract(terms, { hasVerify: 'verify' in id, hasPrepare: false });
    return true;
  } catch {
    return false;
  }
}

/** The terms of its contract, and the options of the call. */
export function splitOnceOptions(options: OnceOptions): readonly [OnceTerms, CallOptions] {
  const given = Object.entries(options);
  if (given.length === 0) return plain;
  return [
    Object.fromEntries(given.filter(([field]) => ownOfOnce.has(field))),
    Object.fromEntries(given.filter(([field]) => !ownOfOnce.has(field))),
  ];
}

const plain: readonly [OnceTerms, CallOptions] = [{}, noOptions];
