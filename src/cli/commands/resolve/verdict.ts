// A verdict as typed, the resolution it stands for, and what later calls will get.

import type { Resolution } from '../../../semel/index.ts';
import { oneLine } from '../../render/print.ts';
import { usageError } from '../../usage.ts';

export const verdicts = 'landed, not-landed, run-again, abandon or died';

/** For a command to paste. With `|` between them a shell would run the first part, and decide "landed". */
export const verdictToChoose = 'landed/not-landed/run-again/abandon';

export interface VerdictOptions {
  readonly result?: string | undefined;
  readonly ref?: string | undefined;
  readonly note?: string | undefined;
}

export function resolutionOf(verdict: string, options: VerdictOptions): Resolution {
  if (verdict !== 'landed' && (options.result !== undefined || options.ref !== undefined))
    throw usageError(
      'resolve',
      `--${options.result === undefined ? 'ref' : 'result'} only goes with landed, not with ${JSON.stringify(verdict)}`,
      'Leave it out, or use landed.',
    );
  switch (verdict) {
    case 'landed': {
      const remoteRef = options.ref === undefined ? {} : { remoteRef: options.ref };
      return { landed: options.result === undefined ? undefined : resultOf(options.result), ...remoteRef };
    }
    case 'not-landed':
      return 'notLanded';
    case 'run-again':
      return 'runAgain';
    case 'died':
      return 'died';
    case 'abandon':
      if (options.note === undefined) throw usageError('resolve', 'abandon needs a reason', 'Add -m "why".');
      return { abandon: options.note };
    default:
      throw usageError('resolve', `${JSON.stringify(verdict)} is not a verdict`, `Use one of: ${verdicts}.`);
  }
}

/** Printed before a group is settled, and after one record is. */
export function describeVerdict(verdict: string, options: VerdictOptions): string {
  switch (verdict) {
    case 'landed':
      return options.result === undefined
        ? 'later calls get no result (undefined). If the effect returns something, add --result'
        : `later calls get ${oneLine(options.result, 80)}`;
    case 'not-landed':
      return 'the next call executes';
    case 'run-again':
      return 'the next call executes; a second effect is possible, and accepted';
    case 'abandon':
      return 'it is not done again: later calls fail, with the reason';
    default:
      return 'in doubt if it dispatched something, otherwise free';
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
