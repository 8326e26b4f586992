// What whoever typed a guarded command is told when nobody knows whether it landed: what happened, what settles it, and
// the flag that would have decided it.

import type { SemelError } from '../core/errors.ts';
import { commandOptions } from '../semel/index.ts';
import type { StoreFacts } from '../store/store.ts';
import { complain } from './print.ts';

export interface Doubtful {
  readonly name: string;
  readonly namespace: string;
  readonly facts: StoreFacts;
  /** What was typed already. */
  readonly hasVerify: boolean;
  /** The exit code of this attempt, where there was one. */
  readonly exit: number | undefined;
}

export function tellDoubt(error: SemelError, { name, namespace, facts, hasVerify, exit }: Doubtful): void {
  const { record, error: first } = error.evidence ?? {};
  const verdicts = 'landed|not-landed|run-again|abandon';
  const earliest =
    error.retryAfterMs === undefined
      ? ''
      : ` ("not landed" in ${Math.ceil(error.retryAfterMs / 1000)} s at the earliest)`;
  complain(
    `${name} may have landed: ${first ?? 'the process that ran it ended without a word'}. It was not run again.`,
  );
  complain(
    `look whether it is there, then: semel resolve ${record} ${verdicts} ${commandOptions(namespace, facts) ?? ''}${earliest}`,
  );
  if (hasVerify) complain('the verifier could not decide it yet; it is asked again at the next call');
  else if (exit !== undefined && exit > 0 && exit < 126)
    complain(
      `--verify <command> would decide it; --not-landed-exit ${exit} would say that this code means: nothing was sent`,
    );
}
