// What one run of a tool sends, by which ways, to what kind of target; and the provider row in which the tool's author has
// written down what that target honours.

import type { Via } from '../../src/core/contract/classify.ts';
import type { Provider } from '../../src/core/contract/provider.ts';
import type { Chance } from './chance.ts';
import type { Profile } from './faults.ts';
import type { Target } from './world.ts';

/** One request of a run. */
export interface Part {
  /** By an SDK of its own that semel never sees, or by `ctx.fetch`. */
  readonly way: 'sdk' | 'fetch';
  /** The SDK makes a key up for each of its calls; one of its own then reads none of ours. */
  readonly madeUpKey: boolean;
  /** That SDK sends once more by itself where the answer says nothing. */
  readonly retries: boolean;
  /** The run goes on where this part fails: only the last part is what it was asked for. */
  readonly optional: boolean;
}

const minute = 60_000;

const windows = {
  none: [20_000, minute, 5 * minute, 30 * minute],
  keyed: [5 * minute],
  brief: [15_000, 40_000],
  fleeting: [300, 1_500],
};
/** How long re-runs count. */
const rerunTimes = {
  none: [20_000, minute, 4 * minute, 60 * minute],
  keyed: [15_000, 30_000, minute],
  brief: [20_000, minute],
  fleeting: [20_000],
};

export const host = 'api.target.test';

export function makePart(chance: Chance, way: Part['way'], optional: boolean): Part {
  return {
    way,
    madeUpKey: chance.happens(way === 'fetch' ? 0.5 : 0.15),
    retries: way === 'fetch' && chance.happens(0.3),
    optional,
  };
}

export function makeParts(chance: Chance): readonly Part[] {
  const make = (way: Part['way'], optional: boolean) => makePart(chance, way, optional);
  if (chance.happens(0.6)) return [make('sdk', false)];
  if (chance.happens(0.5)) return [make('fetch', false)];
  const ways = chance.pick([
    ['sdk', 'fetch'],
    ['fetch', 'sdk'],
    ['fetch', 'fetch'],
    ['sdk', 'sdk'],
  ] as const);
  const isOptional = chance.happens(0.3);
  const [first, ...rest] = ways.map((way, at) => make(way, isOptional && at === 0));
  // What a run sends beside a key that it reads, nobody can see.
  const isMadeUp = ways.every((way) => way === 'sdk') && first?.madeUpKey === true;
  return [first as Part, ...rest].map((part) =>
    part.way === 'sdk' ? { ...part, madeUpKey: isMadeUp } : part,
  );
}

/** How all effects of a run are sent, where its author can say so. */
export function makeVia(chance: Chance, parts: readonly Part[]): Via | 'one request' | undefined {
  const [first] = parts;
  const isFetched = parts.every(({ way }) => way === 'fetch');
  if (isFetched && chance.happens(0.6)) return 'fetch';
  // What is sent again by an SDK is a second request.
  return parts.length === 1 && first?.retries === false && chance.happens(0.3) ? 'one request' : undefined;
}

/** What its errors mean, by their codes. */
export const codes = { EREFUSED: 'rejected', ENOTSENT: 'notLanded' } as const;

export function meaningOfCode(error: unknown): (typeof codes)[keyof typeof codes] | undefined {
  return codes[(error as { code?: keyof typeof codes }).code as keyof typeof codes];
}

export interface TargetPlan {
  readonly target: Target;
  readonly provider: Provider | undefined;
  readonly timeoutMs: number;
  readonly timeout: number | 'none';
  readonly window: number | undefined;
  readonly verifyAfter: number | undefined;
}

export function makeTarget(
  chance: Chance,
  bias: Profile['bias'],
  parts: readonly Part[],
  hasVerify: boolean,
): TargetPlan {
  const isKeyed = chance.happens(bias === 'keyed' ? 1 : 0.45);
  const timeout = chance.happens(0.04) ? 'none' : chance.pick([12_000, 20_000, 30_000]);
  const timeoutMs = timeout === 'none' ? 0 : timeout;
  // Re-runs count for the window less timeout and a minute: long enough that some are allowed.
  const remembered = timeoutMs + minute + chance.pick(rerunTimes[bias ?? 'none']);
  const chosen = chance.happens(0.05) ? undefined : chance.pick(windows[bias ?? 'none']);
  // The default is a day and more: then the provider has to remember for longer, or `verify` has to decide.
  const window = isKeyed && !hasVerify ? Math.min(chosen ?? remembered, remembered) : chosen;
  const verifyAfter = chance.happens(0.5)
    ? chance.pick([2_000, 5_000, Math.max(1_000, timeoutMs / 2), timeoutMs + 5_000, timeoutMs + 30_000])
    : undefined;
  const replaysErrors = isKeyed && chance.happens(0.3);
  const provider = isKeyed ? makeProvider(chance, parts, remembered, replaysErrors, hasVerify) : undefined;
  // A service whose SDK makes keys up honours those, whether or not the contract knows of it.
  const isMadeUp = parts.some(({ madeUpKey }) => madeUpKey);
  const isHonoured = provider === undefined ? isMadeUp : provider.sentBy !== 'nobody';
  return {
    provider,
    timeout,
    timeoutMs,
    window,
    verifyAfter,
    target: {
      // "At the least": some remember longer, and some for good.
      remembersMs: isHonoured ? remembered + chance.pick([0, 0, minute, 10_000 * minute]) : undefined,
      replaysErrors,
      listLagMs: chance.happens(0.3) ? chance.pick([500, 1_500, 4_000]) : 0,
    },
  };
}

/** A row of one's own, with everything that such a row may say. */
function makeProvider(
  chance: Chance,
  parts: readonly Part[],
  window: number,
  replaysErrors: boolean,
  hasVerify: boolean,
): Provider {
  const isFetched = parts.some(({ way }) => way === 'fetch');
  const isTrusted = !hasVerify || chance.happens(0.85);
  // A row knows the errors of its own requests. Where its key is trusted it speaks for all that a run does, so an author who
  // writes one has nothing else in that run.
  const isAlone = parts.length === 1 || parts.every(({ way }) => way === 'fetch');
  const row = {
    name: 'target',
    window,
    replaysErrors,
    hosts: [host],
    ...((isAlone || !isTrusted) && chance.happens(0.4) ? { classify: meaningOfCode } : {}),
  };
  if (!isFetched)
    return { ...row, sentBy: isTrusted ? chance.pick(['fetch', 'tool', 'tool'] as const) : 'nobody' };
  const isMadeUp = parts.some(({ madeUpKey }) => madeUpKey);
  const place = isMadeUp
    ? chance.pick(['header', 'x-header'] as const)
    : chance.pick(['header', 'x-header', 'body', 'query'] as const);
  return {
    ...row,
    ...(place === 'x-header' ? { header: 'X-Request-Id' } : {}),
    ...(place === 'body' ? { bodyField: 'request_id' } : {}),
    ...(place === 'query' ? { queryField: 'request_id' } : {}),
    ...(isMadeUp && chance.happens(0.5) ? { sdkKey: /^sdk-/ } : {}),
    ...(chance.happens(0.3) ? { format: (uuid: string) => uuid.replaceAll('-', '') } : {}),
    ...(isTrusted ? {} : { verified: false }),
  };
}
