// Parses option values: durations, instants, whole numbers, pairs. Every command reads them here, before it does
// anything, so that a spelling means the same everywhere.

import { type Duration, durationMs, formatDuration } from '../../core/contract/duration.ts';
import { firstInstantAt } from '../../core/contract/period.ts';
import { isSemelError } from '../../core/errors.ts';
import { usageError } from '../usage.ts';
import { parseInstant } from './instant.ts';

/** Node.js fires longer timers immediately. */
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
    fallback: Usual,
    range?: Partial<Range>,
  ): number | Usual;
  /** In `zone`, unless it names its own. */
  instant(flag: keyof Values & string, zone?: string): number | undefined;
  whole(flag: keyof Values & string, fallback: number, range: Range): number;
  /** `name=value`, of a repeatable option. */
  pairs(flag: keyof Values & string, example: string): readonly (readonly [string, string])[];
}

export function flagReader<Values extends object>(command: string, values: Values): FlagReader<Values> {
  const given = (flag: keyof Values & string) => values[flag] as string | undefined;
  const refuse = (flag: string, text: string, what: string, next: string) =>
    usageError(command, `--${flag} ${JSON.stringify(text.slice(0, 80))} is not ${what}`, next);

  return {
    duration(flag, fallback, { from = 0, to = Number.POSITIVE_INFINITY } = {}) {
      const text = given(flag);
      if (text === undefined) return fallback;
      const ms = parseDuration(text);
      if (ms === undefined)
        throw refuse(flag, text, 'a duration', 'Write it like 500ms, 30s, 15m, 1.5h, 7d or 2w.');
      if (ms < from) throw usageError(command, `--${flag} must be at least ${formatDuration(from)}`);
      if (ms > to) throw usageError(command, `--${flag} must be at most ${formatDuration(to)}`);
      return ms;
    },
    instant(flag, zone = 'UTC') {
      const text = given(flag);
      if (text === undefined) return undefined;
      const parsed = parseInstant(text.trim());
      if (parsed === undefined)
        throw refuse(
          flag,
          text,
          'a time',
          'Write it like 2026-06-19, 2026-06-19T09:02 or 2026-06-19T09:02:00+02:00, or in seconds since 1970.',
        );
      return parsed.hasZone ? parsed.at : firstInstantAt(zone, parsed.at);
    },
    whole(flag, fallback, { from = 0, to }) {
      const text = given(flag);
      if (text === undefined) return fallback;
      const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
      if (number >= from && number <= to) return number;
      throw refuse(flag, text, 'a valid number', `Write a whole number from ${from} to ${to}.`);
    },
    pairs(flag, example) {
      return ((values[flag] as readonly string[] | undefined) ?? []).map((text) => {
        const at = text.indexOf('=');
        if (at < 1) throw refuse(flag, text, 'a name with a value', `Write it like --${flag} ${example}.`);
        return [text.slice(0, at), text.slice(at + 1)] as const;
      });
    },
  };
}

export function parseDuration(text: string): number | undefined {
  try {
    return durationMs(text as Duration, '');
  } catch (error) {
    if (isSemelError(error, 'CONTRACT_INVALID')) return undefined;
    throw error;
  }
}
