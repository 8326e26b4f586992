// How one tool's effect may be repeated. A contract that promises what it cannot keep is refused at construction, with the
// field and what to do.

import type { Normaliser } from '../key/identity.ts';
import type { Via } from './classify.ts';
import { flag, list, oneOf, positive, refuse, whole } from './contract-checks.ts';
import { type Duration, durationMs } from './duration.ts';
import {
  checkFields,
  checkNormalisers,
  checkStrict,
  type FieldLists,
  type FieldNames,
  withStrict,
} from './fields.ts';
import { type ContractPer, calendarSlot, isCalendarPeriod, type Per } from './period.ts';
import { computeRerunWindow, defaultNetworkMs, markOf, type Provider } from './provider.ts';
import { checkVersion } from './version.ts';
import { type Effect, effects, isRepeatable } from './words.ts';
import { zoneName } from './zone-names.ts';

export type IfBusy = 'wait' | 'fail' | 'skip';
export type Mode = 'enforce' | 'observe';
export type OnDoubt = 'hold' | 'rerun';

export interface RetryPolicy {
  /** Tries per call, including the first. */
  readonly tries: number;
  readonly backoff?: Duration;
  readonly maxBackoff?: Duration;
}

/** An earlier form of the contract, under which live records may exist. */
export interface EarlierForm extends FieldNames {
  readonly name?: string;
  readonly per?: Per;
}

/** The part of a tool's definition that says how its effect may be repeated. */
export interface ContractDefinition extends FieldNames {
  readonly name: string;
  readonly version?: string;
  readonly effect: Effect;
  readonly stakes?: 'normal' | 'high';
  readonly per?: Per;
  /** Content fields whose difference is a conflict instead of drift. */
  readonly strict?: readonly string[];
  readonly normalize?: Readonly<Record<string, Normaliser | undefined>>;
  readonly window?: Duration;
  readonly failureWindow?: Duration;
  /** The window of a record whose turn was guessed. @default `window` */
  readonly weakWindow?: Duration;
  readonly lease?: Duration;
  readonly timeout?: Duration | 'none';
  readonly ifBusy?: IfBusy;
  readonly wait?: Duration;
  readonly retry?: RetryPolicy;
  readonly maxAttempts?: number;
  readonly provider?: Provider;
  /** Trust "not landed" only this long after an attempt has ended or can no longer send. @default '60s' */
  readonly verifyAfter?: Duration;
  /** All effects of `run` go through `ctx.fetch`: its requests decide what an error means. */
  readonly via?: Via;
  readonly dispatch?: 'claim' | 'explicit';
  readonly result?: 'value' | 'reference';
  readonly redact?: readonly string[];
  readonly permissions?: readonly string[];
  readonly was?: readonly EarlierForm[];
  readonly mode?: Mode;
  readonly onDoubt?: OnDoubt;
  /** Accept an identity that an adapter guessed. */
  readonly weak?: 'accept';
  /** Records answer every caller, not only their own. @default false */
  readonly share?: boolean;
}

export interface Traits {
  readonly hasVerify: boolean;
  readonly hasPrepare: boolean;
}

export interface ContractDefaults {
  /** `off` is said for all contracts, and overrides theirs. */
  readonly mode?: Mode | 'off';
  readonly onDoubt?: OnDoubt;
  readonly lease?: Duration;
  readonly timeout?: Duration | 'none';
  readonly ifBusy?: IfBusy;
  readonly verifyAfter?: Duration;
}

export interface Contract {
  readonly name: string;
  readonly version: string;
  readonly effect: Effect;
  readonly per: ContractPer;
  readonly fields: FieldLists;
  readonly strict: readonly string[];
  readonly normalize: Readonly<Record<string, Normaliser>>;
  readonly windowMs: number;
  readonly failureWindowMs: number;
  /** Null: same as the window. */
  readonly weakWindowMs: number | null;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly ifBusy: IfBusy;
  readonly waitMs: number;
  readonly retry: { readonly tries: number; readonly backoffMs: number; readonly maxBackoffMs: number };
  readonly maxAttempts: number;
  readonly provider: Provider | undefined;
  /** Which provider, and the form of its keys; null: none. Part of the version of a record. */
  readonly providerMark: string | null;
  /** A re-run with the provider's key is allowed only this long after the first dispatch; null: no key is trusted. */
  readonly rerunWithinMs: number | null;
  /** `verifyAfter`: how long after an attempt's end its requests may be in flight. */
  readonly networkMs: number;
  /** The same after a dispatch: the attempt may send until its timeout, or until its lease is over. */
  readonly inFlightForMs: number;
  readonly via: Via | undefined;
  /** When an attempt counts as dispatched: at the claim, between `prepare` and `run`, or when `run` says so. */
  readonly dispatch: 'claim' | 'prepared' | 'explicit';
  readonly result: 'value' | 'reference';
  readonly redact: readonly string[];
  readonly permissions: readonly string[];
  readonly was: readonly { readonly name: string; readonly per: ContractPer; readonly fields: FieldLists }[];
  readonly mode: Mode | 'off';
  readonly onDoubt: OnDoubt;
  readonly acceptsWeak: boolean;
  readonly share: boolean;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function defineContract(
  definition: ContractDefinition,
  traits: Traits,
  defaults: ContractDefaults = {},
): Contract {
  if (typeof definition !== 'object' || definition === null)
    refuse('', "A tool's definition must be an object.", 'Pass { name, effect, per, run }.');
  const { name, effect } = definition;
  checkName(name, 'name');
  if (!effects.includes(effect)) {
    refuse(
      'effect',
      `${name}: ${JSON.stringify(effect)} is not a valid effect.`,
      `Use one of ${effects.join(', ')}.`,
    );
  }
  const remembered = !isRepeatable(effect);
  if (remembered && definition.per === undefined) {
    refuse(
      'per',
      `${name}: a tool of class ${effect} needs \`per\`: within what two equal calls are one.`,
      "Say 'turn', 'conversation', 'run', day('Europe/Paris'), '24h', 'ever', …",
    );
  }
  const per = checkPer(name, definition.per ?? 'ever');
  const strict = checkStrict(definition);
  const fields = checkFields(name, withStrict(definition, strict));
  const windowMs = remembered ? chooseWindow(definition, per) : 0;
  const timeout = definition.timeout ?? defaults.timeout ?? '10m';
  const timeoutMs =
    timeout === 'none' ? Number.POSITIVE_INFINITY : positive(durationMs(timeout, 'timeout'), 'timeout', name);
  const leaseMs = positive(durationMs(definition.lease ?? defaults.lease ?? '60s', 'lease'), 'lease', name);
  const verifyAfter = definition.verifyAfter ?? defaults.verifyAfter;
  const networkMs = verifyAfter === undefined ? defaultNetworkMs : durationMs(verifyAfter, 'verifyAfter');
  const failureWindowMs = remembered
    ? Math.min(durationMs(definition.failureWindow ?? '1h', 'failureWindow'), windowMs)
    : 0;

  const weakWindowMs =
    remembered && definition.weakWindow !== undefined
      ? Math.min(positive(durationMs(definition.weakWindow, 'weakWindow'), 'weakWindow', name), windowMs)
      : null;

  return {
    name,
    version: checkVersion(name, definition.version ?? '1'),
    effect,
    per,
    fields,
    strict,
    normalize: checkNormalisers(name, definition.normalize ?? {}),
    windowMs,
    failureWindowMs,
    weakWindowMs,
    leaseMs,
    timeoutMs,
    ifBusy: oneOf(name, 'ifBusy', definition.ifBusy ?? defaults.ifBusy ?? 'wait', ['wait', 'fail', 'skip']),
    waitMs: definition.wait === undefined ? timeoutMs : durationMs(definition.wait, 'wait'),
    retry: checkRetry(name, definition.retry),
    maxAttempts: whole(name, 'maxAttempts', definition.maxAttempts ?? 10),
    provider: definition.provider,
    rerunWithinMs: chooseRerunWindow(definition, remembered, {
      windowMs,
      windowField: typeof per === 'number' ? 'per' : 'window',
      timeoutMs,
      isDecided: !remembered || traits.hasVerify,
    }),
    // After the check of the provider.
    providerMark: definition.provider === undefined ? null : markOf(definition.provider),
    networkMs,
    // Without a timeout only the lease bounds it, and every renewal restarts it.
    inFlightForMs: (Number.isFinite(timeoutMs) ? Math.max(timeoutMs, leaseMs) : leaseMs) + networkMs,
    via:
      definition.via === undefined ? undefined : oneOf<Via>(name, 'via', definition.via, ['fetch', 'steps']),
    dispatch: chooseDispatch(name, definition, traits),
    result: oneOf(name, 'result', definition.result ?? 'value', ['value', 'reference']),
    redact: checkFields(name, { volatile: definition.redact ?? [] }, 'redact').volatile,
    permissions: list(name, 'permissions', definition.permissions),
    was: list(name, 'was', definition.was).map((form) => ({
      name: checkName(form.name ?? name, 'was.name'),
      per: checkPer(name, form.per ?? per),
      fields: form.identity || form.content || form.volatile ? checkFields(name, form) : fields,
    })),
    mode:
      defaults.mode === 'off'
        ? 'off'
        : oneOf(name, 'mode', definition.mode ?? defaults.mode ?? 'enforce', ['enforce', 'observe']),
    onDoubt: oneOf(name, 'onDoubt', definition.onDoubt ?? defaults.onDoubt ?? 'hold', ['hold', 'rerun']),
    acceptsWeak: definition.weak === 'accept',
    share: flag(name, 'share', definition.share ?? false),
  };
}

/** The steps know our key for good, like a provider that never forgets. */
function chooseRerunWindow(
  { name, provider, via, dispatch }: ContractDefinition,
  isRemembered: boolean,
  kept: Parameters<typeof computeRerunWindow>[2],
): number | null {
  if (via !== 'steps') return computeRerunWindow(name, provider, kept);
  if (!isRemembered)
    refuse('via', `${name}: steps need a class that is remembered.`, "Write effect: 'write-non-idempotent'.");
  if (provider !== undefined)
    refuse(
      'provider',
      `${name}: with via: 'steps', each step has its own provider.`,
      'Pass it to `ctx.step`.',
    );
  if (dispatch !== undefined)
    refuse(
      'dispatch',
      `${name}: with via: 'steps', nothing is sent outside of a step.`,
      'Leave `dispatch` out.',
    );
  return foreverMs;
}

/** A thousand years: still an instant that every store can hold. */
const foreverMs = 1_000 * 366 * 86_400_000;

function checkName(name: unknown, path: string): string {
  if (typeof name === 'string' && namePattern.test(name)) return name;
  const shown = typeof name === 'string' ? JSON.stringify(name.slice(0, 80)) : typeof name;
  return refuse(
    path,
    `A contract's name must be 1 to 64 letters, digits, dots, dashes or underscores, not ${shown}.`,
    'Rename it.',
  );
}

function chooseWindow({ name, effect, stakes, window }: ContractDefinition, per: ContractPer): number {
  if (typeof per === 'number') {
    if (window === undefined) return per;
    refuse(
      'window',
      `${name}: \`window\` has no meaning with a TTL: \`per\` says how long a success answers.`,
      'Leave `window` out.',
    );
  }
  if (window !== undefined) return positive(durationMs(window, 'window'), 'window', name);
  if (effect === 'irreversible') return 30 * dayMs;
  return stakes === 'high' ? 7 * dayMs : dayMs;
}

function chooseDispatch(
  name: string,
  { dispatch }: ContractDefinition,
  { hasPrepare }: Traits,
): Contract['dispatch'] {
  if (dispatch === undefined) return hasPrepare ? 'prepared' : 'claim';
  if (dispatch === 'claim' && hasPrepare) {
    refuse('dispatch', `${name}: \`prepare\` excludes dispatch: 'claim'.`, 'Leave `dispatch` out.');
  }
  return oneOf(name, 'dispatch', dispatch, ['claim', 'explicit']);
}

function checkPer(name: string, per: Per): ContractPer {
  if (per === 'turn' || per === 'conversation' || per === 'run' || per === 'ever') return per;
  if (isCalendarPeriod(per)) {
    calendarSlot(per, 0);
    return { unit: per.unit, zone: zoneName(per.zone) };
  }
  // A text that begins with a digit is meant as a duration.
  if (typeof per === 'number' || (typeof per === 'string' && /^\d/.test(per)))
    return positive(durationMs(per, 'per'), 'per', name);
  const shown = typeof per === 'function' ? 'a function that was not called' : JSON.stringify(per);
  return refuse(
    'per',
    `${name}: ${shown} is not a period.`,
    "Use 'turn', 'conversation', 'run', 'ever', a duration such as '24h', or minute(), hour(), day(), week(), month() with a time zone.",
  );
}

function checkRetry(name: string, retry: RetryPolicy | undefined): Contract['retry'] {
  if (retry === undefined) return { tries: 1, backoffMs: 0, maxBackoffMs: 0 };
  return {
    tries: whole(name, 'retry.tries', retry.tries),
    backoffMs: durationMs(retry.backoff ?? '500ms', 'retry.backoff'),
    maxBackoffMs: durationMs(retry.maxBackoff ?? '30s', 'retry.maxBackoff'),
  };
}
