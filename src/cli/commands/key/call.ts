// What the options of `semel key` say: the contract, its period, and the args of one call or two.

import type { Duration } from '../../../core/contract/duration.ts';
import { day, hour, minute, month, type Per, week } from '../../../core/contract/period.ts';
import { normalisers } from '../../../core/key/normalise.ts';
import { idsOf, parseJson, readJson } from '../../args/ids.ts';
import { usageError } from '../../usage.ts';

export const periods = [
  'ever',
  'turn',
  'conversation',
  'run',
  'minute',
  'hour',
  'day',
  'week',
  'month',
] as const;

type Period = (typeof periods)[number];

const calendar = { minute, hour, day, week, month };

export function perOf(period: Period | Duration, zone: string | undefined): Per {
  if (period in calendar) return calendar[period as keyof typeof calendar](zone ?? 'UTC');
  if (zone !== undefined)
    throw usageError('key', `--tz has no effect with --per ${period}`, 'Leave it out, or use --per day.');
  return period as Exclude<Period, keyof typeof calendar> | Duration;
}

export function pathsOf(list: string | undefined): readonly string[] | undefined {
  return list?.split(',').map((path) => path.trim());
}

export function normaliseOf(entries: readonly string[]): Readonly<Record<string, keyof typeof normalisers>> {
  return Object.fromEntries(
    entries.map((entry) => {
      const at = entry.lastIndexOf('=');
      const name = entry.slice(at + 1);
      if (at < 1 || !Object.hasOwn(normalisers, name))
        throw usageError(
          'key',
          `--normalize ${entry} is not valid`,
          `Write --normalize <field>=${Object.keys(normalisers).join('|')}.`,
        );
      return [entry.slice(0, at), name as keyof typeof normalisers];
    }),
  );
}

interface ArgsGiven {
  readonly id?: string[] | undefined;
  readonly 'id-json'?: string[] | undefined;
  readonly and?: string | undefined;
}

/** Args of one call, or of two to compare. */
export function callsOf({ id = [], 'id-json': files = [], and }: ArgsGiven): readonly unknown[] {
  if (files.filter((file) => file === '-').length > 1)
    throw usageError('key', 'standard input can be read only once', 'Put the other call in a file.');
  const calls = files.map((file) => readJson('key', file));
  if (id.length > 0) calls.unshift(idsOf('key', id));
  if (and !== undefined) calls.push(parseJson('key', '--and', and));
  if (calls.length === 0 || (calls.length === 1 && and !== undefined)) calls.unshift({});
  if (calls.length > 2)
    throw usageError(
      'key',
      `there are args of ${calls.length} calls`,
      'Give the args of one, or of two to compare.',
    );
  return calls;
}
