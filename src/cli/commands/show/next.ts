// What can be done about a record now: the commands to type, and what each does.

import { formatDuration } from '../../../core/contract/duration.ts';
import { shownOwner } from '../../../jobs/index.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import { personDecides } from '../../caller.ts';
import { stateOf } from '../../render/state.ts';

export interface NextStep {
  /** Undefined if there is nothing to type. */
  readonly command: string | undefined;
  readonly why: string;
}

/** `options` select this ledger: `--namespace shop`. */
export function nextSteps(record: RecordInfo, options: string, now: number): readonly NextStep[] {
  const step = (words: string, why: string): NextStep => ({
    command: `semel ${words} ${options}`.trimEnd(),
    why,
  });
  const resolve = (verdict: string, why: string) => step(`resolve ${record.ref} ${verdict}`, why);

  switch (stateOf(record)) {
    case 'in doubt':
      return [
        ...looking(record),
        resolve(`landed --result '<json>'`, 'it landed: later calls get the result'),
        resolve('not-landed', `it did not land: the next call executes${tooEarly(record, now)}`),
        resolve('run-again', 'unknown, and a second effect is acceptable: the next call executes'),
        resolve('abandon -m "why"', 'give it up: it is not done again'),
      ];
    case 'running':
      return [
        {
          command: undefined,
          why: `It is being executed by ${shownOwner(record.owner)}. Unless renewed, its lease ends in ${formatDuration(record.leaseLeftMs)}.`,
        },
        resolve('died', 'its process is gone: do not wait for the lease'),
      ];
    case 'abandoned':
      return [
        {
          command: undefined,
          why: 'Nothing was dispatched, so nothing landed: repeat the call to execute it.',
        },
      ];
    case 'succeeded':
      return record.expired
        ? expired
        : [step(`forget ${record.ref}`, 'do it again: the next call executes, a second effect')];
    case 'failed':
      if (record.expired) return expired;
      return record.doubt
        ? [step(`retry ${record.ref}`, 'it was abandoned: make it an open question again')]
        : [step(`retry ${record.ref}`, 'the reason is gone: the next call executes')];
    case 'released':
      return [
        { command: undefined, why: 'The next call executes. Repeat the call if it is still wanted.' },
        ...(record.doubt ? [resolve(`landed --result '<json>'`, 'revoke "run again": it did land')] : []),
      ];
  }
}

/** For an agent, which must not judge its own effects. */
export function withoutVerdicts(steps: readonly NextStep[]): readonly NextStep[] {
  const others = steps.filter((step) => step.command === undefined);
  return others.length === steps.length ? steps : [...others, { command: undefined, why: personDecides }];
}

const expired: readonly NextStep[] = [
  { command: undefined, why: 'It has expired: the next call executes. `semel prune` removes it.' },
];

function looking({ providerKey, remoteRef }: RecordInfo): readonly NextStep[] {
  const name = remoteRef ?? providerKey;
  return name === undefined
    ? []
    : [{ command: undefined, why: `Check the target first: search there for ${name}.` }];
}

function tooEarly({ inFlightUntil }: RecordInfo, now: number): string {
  if (inFlightUntil === undefined || inFlightUntil.getTime() <= now) return '';
  if (Number.isNaN(inFlightUntil.getTime()))
    return ' (a request may still be on its way: --force if you are sure)';
  return ` (in ${formatDuration(Math.ceil((inFlightUntil.getTime() - now) / 1000) * 1000)}: a request may still be on its way; --force if you are sure)`;
}
