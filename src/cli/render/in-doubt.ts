// What whoever typed a guarded command is told when nobody knows whether it landed: what happened, what settles it, and
// the flag that would have decided it.

import type { SemelError } from '../../core/errors.ts';
import type { ChildEnding } from '../../jobs/index.ts';
import { commandOptions } from '../../semel/index.ts';
import type { StoreFacts } from '../../store/store.ts';
import { isAgent, personDecides } from '../caller.ts';
import { verdictToChoose } from '../commands/resolve/verdict.ts';
import { complain } from './print.ts';

export interface Doubtful {
  readonly label: string;
  readonly namespace: string;
  readonly facts: StoreFacts;
  readonly hasVerify: boolean;
  /** Of this very call, where it ran. */
  readonly ending: ChildEnding | undefined;
  /** What could be typed, so that it need not be asked. */
  readonly flags: string;
}

export function tellDoubt(error: SemelError, told: Doubtful): void {
  const { label, namespace, facts, hasVerify, ending, flags } = told;
  const { record, error: first } = error.evidence ?? {};
  const why =
    first === undefined ? 'the process that ran it exited without reporting a result' : String(first);
  complain(
    `${label} may have landed: ${why.replace(/\.$/, '')}.${ending === undefined ? ' It was not run again.' : ''}`,
  );
  if (isAgent()) {
    complain(`${personDecides} It is the record ${record}.`);
    return;
  }
  const earliest =
    error.retryAfterMs === undefined
      ? ''
      : ` ("not landed" in ${Math.ceil(error.retryAfterMs / 1000)} s at the earliest)`;
  complain(
    `look whether it is there, then: semel resolve ${record} ${verdictToChoose} ${commandOptions(namespace, facts) ?? ''}${earliest}`,
  );
  complain(hasVerify ? 'the verifier could not decide it yet; it is asked again at the next call' : flags);
}
