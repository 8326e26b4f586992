// A verdict as it is typed, what it tells the ledger, and what later calls will get.

import type { Resolution } from '../../../semel/index.ts';
import { oneLine } from '../../render/print.ts';
import { usageError } from '../../usage.ts';

export const verdicts = 'landed, not-landed, run-again, abandon or died';

/** In a line to paste. With `|` between them a shell would run the part before it, and that decides "landed". */
export const verdictToChoose = 'landed/not-landed/run-again/abandon';

export interface Words {
  readonly result?: string | undefined;
  readonly ref?: string | undefined;
  readonly note?: string | undefined;
}

export function resolutionOf(verdict: string, given: Words): Resolution {
  if (verdict !== 'landed' && (given.result !== undefined || given.ref !== undefined))
    throw usageError(
      'resolve',
      `--${given.result === undefined ? 'ref' : 'result'} belongs to what landed, not to ${JSON.stringify(verdict)}`,
      'Leave it out, or write: landed.',
    );
  switch (verdict) {
    case 'landed': {
      const remoteRef = given.ref === undefined ? {} : { remoteRef: given.ref };
      return { landed: given.result === undefined ? undefined : resultOf(given.result), ...remoteRef };
    }
    case 'not-landed':
      return 'notLanded';
    case 'run-again':
      return 'runAgain';
    case 'died':
      return 'died';
    case 'abandon':
      if (given.note === undefined)
        throw usageError('resolve', 'to abandon needs a reason', 'Write: -m "why"');
      return { abandon: given.note };
    default:
      throw usageError(
        'resolve',
        `${JSON.stringify(verdict)} is not a verdict`,
        `Write one of them: ${verdicts}.`,
      );
  }
}

/** Said before a group is settled, and after one record is. */
export function meaningOf(verdict: string, given: Words): string {
  switch (verdict) {
    case 'landed':
      return given.result === undefined
        ? 'later calls get undefined. If the effect returns something, give it by --result'
        : `later calls get ${oneLine(given.result, 80)}`;
    case 'not-landed':
      return 'the next call executes';
    case 'run-again':
      return 'the next call executes; a second effect is possible, and accepted';
    case 'abandon':
      return 'it is not done again: later calls fail, with the reason';
    default:
      return 'what it dispatched is in doubt, what it did not is free';
  }
}

function resultOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw usageError(
      'resolve',
      '--result is not JSON',
      `Quote it for the shell: --result '{"id":"re_1"}', or '"sent"' for a text.`,
    );
  }
}
