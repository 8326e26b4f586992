// The message for a guarded command that is in doubt: what happened, what settles it, and the flag that would have.

import type { SemelError } from '../../core/errors.ts';
import type { ChildEnding } from '../../jobs/index.ts';
import type { StoreFacts } from '../../store/store.ts';
import { isAgent, personDecides } from '../caller.ts';
import { verdictToChoose } from '../commands/resolve/verdict.ts';
import { ledgerOptions } from '../ledger.ts';
import { complain } from './print.ts';

export interface Doubt {
  readonly label: string;
  readonly namespace: string;
  readonly facts: StoreFacts;
  readonly hasVerify: boolean;
  /** Set if this call ran the command. */
  readonly ending: ChildEnding | undefined;
  /** The flags that would decide it without a person. */
  readonly flags: string;
}

export function explainDoubt(error: SemelError, doubt: Doubt): void {
  const { label, namespace, facts, hasVerify, ending, flags } = doubt;
  const { record, error: first } = error.evidence ?? {};
  const why =
    first === undefined ? 'the process that ran it exited without reporting a result' : String(first);
  complain(
    `${label} may have landed: ${why.replace(/\.$/, '')}.${ending === undefined ? ' It was not run again.' : ''}`,
  );
  if (isAgent()) {
    complain(`${personDecides} The record is ${record}.`);
    return;
  }
  const earliest =
    error.retryAfterMs === undefined
      ? ''
      : ` ("not landed" in ${Math.ceil(error.retryAfterMs / 1000)} s at the earliest)`;
  complain(
    `check whether it landed, then: semel resolve ${record} ${verdictToChoose} ${ledgerOptions(namespace, facts)}${earliest}`,
  );
  complain(hasVerify ? 'the verifier could not decide yet; the next call asks it again' : flags);
  complain('more: semel explain IN_DOUBT');
}
