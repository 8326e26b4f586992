// Contracts by chance: all classes, lines, recoveries and windows, short enough for a history of minutes.

import { type Contract, type ContractDefinition, defineContract } from '../../src/core/contract.ts';
import type { Chance } from './chance.ts';
import type { Profile } from './faults.ts';
import type { Target } from './world.ts';

/** One intent of a history: what is asked for, by several callers, under one key. */
export interface Intent {
  readonly contract: Contract;
  readonly target: Target;
  readonly hasVerify: boolean;
  readonly hasPrepare: boolean;
  /** The caller's own key, which other args can meet. */
  readonly callerKey: string | undefined;
  readonly id: string;
  /** How a tool of this intent says "refused" or "not sent": by throwing the word, or by a code that is classified. */
  readonly classifies: boolean;
  /** `run` looks at its signal before it sends. */
  readonly polite: boolean;
}

const minute = 60_000;

const windows = {
  none: [20_000, minute, 5 * minute, 30 * minute],
  keyed: [5 * minute],
  brief: [15_000, 40_000],
  fleeting: [300, 1_500],
};
const failureWindows = {
  none: [10_000, minute],
  keyed: [10_000],
  brief: [8_000, 40_000],
  fleeting: [300, 1_500],
};
/** How long re-runs count. */
const rerunTimes = {
  none: [20_000, minute, 4 * minute, 60 * minute],
  keyed: [15_000, 30_000, minute],
  brief: [20_000, minute],
  fleeting: [20_000],
};

export function makeIntent(chance: Chance, index: number, bias: Profile['bias']): Intent {
  const effect = chance.happens(0.14)
    ? 'write-idempotent'
    : chance.happens(0.3)
      ? 'irreversible'
      : 'write-non-idempotent';
  const hasVerify = chance.happens(0.45);
  const hasPrepare = chance.happens(0.25);
  const isKeyed = chance.happens(bias === 'keyed' ? 1 : 0.45);
  const timeout = chance.pick([12_000, 20_000, 30_000]);
  // Re-runs count for the window less timeout and a minute: long enough that some are allowed.
  const providerWindow = timeout + minute + chance.pick(rerunTimes[bias ?? 'none']);
  const window = chance.pick(windows[bias ?? 'none']);
  const replaysErrors = isKeyed && chance.happens(0.3);
  const definition: ContractDefinition = {
    name: `tool${index}`,
    effect,
    per: chance.happens(bias === 'brief' ? 0.4 : 0.2) ? 'ever' : 'conversation',
    identity: ['id'],
    window: isKeyed && !hasVerify ? Math.min(window, providerWindow) : window,
    failureWindow: chance.pick(failureWindows[bias ?? 'none']),
    lease: chance.pick([3_000, 6_000, 10_000]),
    timeout,
    ifBusy: bias === 'fleeting' ? 'wait' : chance.pick(['wait', 'wait', 'wait', 'fail', 'skip']),
    wait: chance.pick([8_000, 30_000]),
    ...(chance.happens(0.35)
      ? {
          retry: {
            tries: chance.between(2, 3),
            backoff: chance.pick([200, 5_000, 40_000]),
            maxBackoff: '60s',
          },
        }
      : {}),
    maxAttempts: chance.pick([2, 3, 10]),
    ...(isKeyed ? { provider: { name: 'target', window: providerWindow, replaysErrors } } : {}),
    ...(chance.happens(0.5) ? { verifyAfter: chance.pick([5_000, timeout + 5_000, timeout + 30_000]) } : {}),
    ...(!hasPrepare && chance.happens(bias === 'fleeting' ? 0.7 : 0.35)
      ? { dispatch: 'explicit' as const }
      : {}),
    // Nobody can send again what was not stored; where nothing forbids it, the target sees other words.
    ...(effect !== 'write-idempotent' && chance.happens(0.05) ? { redact: ['note'] } : {}),
    onDoubt: chance.happens(0.06) ? 'rerun' : 'hold',
  };
  return {
    contract: defineContract(definition, { hasVerify, hasPrepare }),
    target: {
      // "At the least": some remember longer, and some for good.
      remembersMs: isKeyed ? providerWindow + chance.pick([0, 0, minute, 10_000 * minute]) : undefined,
      replaysErrors,
    },
    hasVerify,
    hasPrepare,
    // The same text for every intent: what goes to the shared target must not be it.
    callerKey: chance.happens(0.4) ? 'order-17' : undefined,
    id: `id${index}`,
    classifies: chance.happens(0.5),
    polite: chance.happens(0.5),
  };
}
