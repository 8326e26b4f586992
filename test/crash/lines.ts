// The contracts that are killed: every effect class, and every way in which a contract can say where its line is and
// what may be done about a doubt. As data, so that matrix, storm and documentation speak of the same ones.

import type { Effect } from '../../src/index.ts';

export interface Line {
  readonly effect: Effect;
  /** The target honours our key. */
  readonly keyed?: true;
  readonly verify?: true;
  /** `run` calls `ctx.dispatch()`. */
  readonly explicit?: true;
  readonly prepare?: true;
  readonly onDoubt?: 'rerun';
}

export const lines = {
  read: { effect: 'read' },
  'write-idempotent': { effect: 'write-idempotent' },
  plain: { effect: 'write-non-idempotent' },
  keyed: { effect: 'write-non-idempotent', keyed: true },
  verified: { effect: 'write-non-idempotent', verify: true },
  explicit: { effect: 'write-non-idempotent', explicit: true },
  prepared: { effect: 'write-non-idempotent', prepare: true },
  'prepared-keyed': { effect: 'write-non-idempotent', prepare: true, keyed: true },
  'explicit-verified': { effect: 'write-non-idempotent', explicit: true, verify: true },
  rerun: { effect: 'write-non-idempotent', onDoubt: 'rerun' },
  irreversible: { effect: 'irreversible' },
  'irreversible-keyed': { effect: 'irreversible', keyed: true },
  'irreversible-verified': { effect: 'irreversible', verify: true },
} as const satisfies Record<string, Line>;

export type LineName = keyof typeof lines;

export const lineNames = Object.keys(lines) as LineName[];

export function lineOf(name: LineName): Line {
  return lines[name];
}

/** How the contract reads, for people. */
export function describe(name: LineName): string {
  const { effect, keyed, verify, explicit, prepare, onDoubt } = lineOf(name);
  return [
    effect,
    keyed && '`provider`',
    verify && '`verify`',
    explicit && "`dispatch: 'explicit'`",
    prepare && '`prepare`',
    onDoubt && `\`onDoubt: '${onDoubt}'\``,
  ]
    .filter(Boolean)
    .join(', ');
}
