// What the options of `semel key` say: the contract, its period, and the args of one call or two.

import { readFileSync } from 'node:fs';
import { normalisers } from '../../core/normalise.ts';
import { day, hour, minute, month, type Per, week } from '../../core/period.ts';
import { usageError } from '../usage.ts';

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

export type Period = (typeof periods)[number];

const calendar = { minute, hour, day, week, month };

export function perOf(period: Period, zone: string | undefined): Per {
  if (period in calendar) return calendar[period as keyof typeof calendar](zone ?? 'UTC');
  if (zone !== undefined)
    throw usageError('key', `--tz means nothing for --per ${period}`, 'Leave it out, or say --per day.');
  return period as Exclude<Period, keyof typeof calendar>;
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
          `--normalize ${entry} names no normaliser`,
          `Write --normalize <field>=${Object.keys(normalisers).join('|')}.`,
        );
      return [entry.slice(0, at), name as keyof typeof normalisers];
    }),
  );
}

export interface ArgsGiven {
  readonly id?: string[] | undefined;
  readonly 'id-json'?: string[] | undefined;
  readonly and?: string | undefined;
}

/** Of one call, or of two that are to be compared. */
export function callsOf({ id = [], 'id-json': files = [], and }: ArgsGiven): readonly unknown[] {
  if (files.filter((file) => file === '-').length > 1)
    throw usageError('key', 'standard input can be read once', 'Write the other call to a file.');
  const calls = files.map((file) => jsonOf(`--id-json ${file}`, fileText(file)));
  if (id.length > 0) calls.unshift(fieldsOf(id));
  if (and !== undefined) calls.push(jsonOf('--and', and));
  if (calls.length === 0 || (calls.length === 1 && and !== undefined)) calls.unshift({});
  if (calls.length > 2)
    throw usageError('key', `these are ${calls.length} calls`, 'Give the args of one, or of two to compare.');
  return calls;
}

/** Values are texts, as they are for `semel once`. */
function fieldsOf(entries: readonly string[]): Readonly<Record<string, string>> {
  const fields = new Map<string, string>();
  for (const entry of entries) {
    const at = entry.indexOf('=');
    const name = entry.slice(0, at);
    if (at < 1) throw usageError('key', `--id ${entry} has no value`, 'Write --id <name>=<value>.');
    if (fields.has(name)) throw usageError('key', `--id ${name} is given twice`, 'Name each field once.');
    fields.set(name, entry.slice(at + 1));
  }
  return Object.fromEntries(fields);
}

const maxBytes = 1_048_576;

function fileText(file: string): string {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw usageError(
      'key',
      `${file} cannot be read (${(error as Error).message})`,
      'Name a file with JSON, or -.',
    );
  }
  if (text.length > maxBytes)
    throw usageError('key', `${file} has more than ${maxBytes} bytes`, 'Args of a call are smaller.');
  return text;
}

function jsonOf(from: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageError(
      'key',
      `${from} is no JSON (${(error as Error).message})`,
      `Quote it for the shell: '{"lead":42}'`,
    );
  }
}
