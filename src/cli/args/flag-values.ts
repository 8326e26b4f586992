// What is written after an option, as the value that is meant: durations, instants, whole numbers, pairs. Every command
// reads them here, before it does anything, so that one spelling means one thing everywhere.

import { type Duration, durationMs, formatDuration } from '../../core/contract/duration.ts';
import { firstInstantAt } from '../../core/contract/period.ts';
import { isSemelError } from '../../core/errors.ts';
import { usageError } from '../usage.ts';
import { writtenInstant } from './instant.ts';

/** Node.js fires a longer timer at once. */
export const maxTimerMs = 24 * 86_400_000;

export interface Range {
  readonly from?: number;
  readonly to: number;
}

export const exitCodes: Range = { to: 255 };

export interface FlagReader<Values> {
  /** In milliseconds. */
  duration<Usual extends number | undefined>(
    flag: keyof Values & string,
    usual: Usual,
    range?: Partial<Range>,
  ): number | Usual;
  /** Without a zone of its own it is a time of `zone`. */
  instant(flag: keyof Values & string, zone?: string): number | undefined;
  whole(flag: keyof Values & string, usual: number, range: Range): number;
  /** `name=value`, of an option that can be given several times. */
  pairs(flag: keyof Values & string, example: string): readonly (readonly [string, string])[];
}

export function flagReader<Values extends object>(command: string, values: Values): FlagReader<Values> {
  const given = (flag: keyof Values & string) => values[flag] as string | undefined;
  const refuse = (flag: string, text: string, what: string, next: string) =>
    usageError(command, `--${flag} ${JSON.stringify(text.slice(0, 80))} is ${what}`, next);

  return {
    duration(flag, usual, { from = 0, to = Number.POSITIVE_INFINITY } = {}) {
      const text = given(flag);
      if (text === undefined) return usual;
      const ms = durationIn(text);
      if (ms === undefined)
        throw refuse(flag, text, 'no duration', 'Write it like 500ms, 30s, 15m, 1.5h, 7d or 2w.');
      if (ms < from) throw usageError(command, `--${flag} is at least ${formatDuration(from)}`);
      if (ms > to) throw usageError(command, `--${flag} is at most ${formatDuration(to)}`);
      return ms;
    },
    instant(flag, zone = 'UTC') {
      const text = given(flag);
      if (text === undefined) return undefined;
      const written = writtenInstant(text.trim());
      if (written === undefined)
        throw refuse(
          flag,
          text,
          'no instant',
          'Write it like 2026-06-19, 2026-06-19T09:02 or 2026-06-19T09:02:00+02:00, or in seconds since 1970.',
        );
      return written.hasZone ? written.at : firstInstantAt(zone, written.at);
    },
    whole(flag, usual, { from = 0, to }) {
      const text = given(flag);
      if (text === undefined) return usual;
      const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
      if (number >= from && number <= to) return number;
      throw refuse(flag, text, 'no such number', `Write a whole number from ${from} to ${to}.`);
    },
    pairs(flag, example) {
      return ((values[flag] as readonly string[] | undefined) ?? []).map((text) => {
        const at = text.indexOf('=');
        if (at < 1) throw refuse(flag, text, 'no name with its value', `Write it like --${flag} ${example}.`);
        return [text.slice(0, at), text.slice(at + 1)] as const;
      });
    },
  };
}

function durationIn(text: string): number | undefined {
  try {
    return durationMs(text as Duration, '');
  } catch (error) {
    if (isSemelError(error, 'CONTRACT_INVALID')) return undefined;
    throw error;
  }
}
