// The mode of a whole instance: its option, otherwise SEMEL_MODE. `dev` and `off` give up a guarantee, so they are announced and
// never used in production.

import type { Call } from '../../call/index.ts';
import type { ContractDefaults, Mode } from '../../core/contract/contract.ts';
import { SemelError } from '../../core/errors.ts';
import { readEnvironment } from './environment.ts';

type Classify = Call['tool']['classify'];

/** `dev`: short waits, and mistakes in your own code leave no doubt. `off`: tools run as plain functions, nothing is recorded. */
export type InstanceMode = Mode | 'dev' | 'off';

export interface ModeChoice {
  /** Undefined: what each contract says. */
  readonly mode: Mode | 'off' | undefined;
  /** What contracts get that don't say it. */
  readonly defaults: ContractDefaults;
  readonly isDevelopment: boolean;
  /** To be said at the start. */
  readonly announcement: string | undefined;
}

const modes: readonly string[] = ['enforce', 'observe', 'dev', 'off'] satisfies InstanceMode[];

const announcements = {
  dev: 'Development mode: leases and waits are short, and a TypeError or ReferenceError that a tool throws counts as "nothing was sent", which can repeat an effect.',
  off: 'Mode "off": tools run as plain functions. Nothing is recorded, and a repeated call repeats its effect.',
};

export function resolveMode(given: InstanceMode | undefined): ModeChoice {
  const [name, path] =
    given === undefined ? [readEnvironment('SEMEL_MODE'), 'SEMEL_MODE'] : ([given, 'mode'] as const);
  if (name !== undefined && !modes.includes(name))
    throw new SemelError('CONTRACT_INVALID', `\`${path}\` is ${JSON.stringify(name)}.`, {
      path,
      next: `Use one of ${modes.join(', ')}.`,
    });
  if (name !== 'dev' && name !== 'off')
    return { mode: name as Mode, defaults: {}, isDevelopment: false, announcement: undefined };
  if (process.env.NODE_ENV === 'production')
    throw new SemelError('CONTRACT_INVALID', `\`${path}\` is "${name}", and NODE_ENV is "production".`, {
      path,
      next: `Remove \`${path}\` in production: there every effect must land once.`,
    });
  const isDevelopment = name === 'dev';
  return {
    mode: isDevelopment ? undefined : 'off',
    defaults: isDevelopment ? { lease: '5s', verifyAfter: '1s' } : {},
    isDevelopment,
    announcement: announcements[name],
  };
}

/** Asks the contract's own `classify` first. */
export function releaseOwnMistakes(classify: Classify): Classify {
  return (error, seen) => {
    const known = classify?.(error, seen);
    if (known !== undefined) return known;
    const mayHaveLanded = seen.requests.some((fate) => fate === 'landed' || fate === 'ambiguous');
    return !mayHaveLanded && isOwnMistake(error) ? 'notLanded' : undefined;
  };
}

/** `fetch` throws a TypeError too, for a request that may have arrived: with a cause. */
function isOwnMistake(error: unknown): boolean {
  return (error instanceof TypeError || error instanceof ReferenceError) && error.cause === undefined;
}
