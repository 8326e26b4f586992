// `--id name=value`: the identity of a run or an effect, as it is typed.

import { repeatedName } from '../../core/key/repeated-name.ts';
import type { Ids } from '../../jobs/index.ts';
import type { CommandName } from '../commands/summaries.ts';
import { cut } from '../render/print.ts';
import { usageError } from '../usage.ts';
import { smallText } from './input.ts';

export function idsOf(command: CommandName, given: readonly string[] | undefined): Ids {
  const ids: Record<string, string> = {};
  for (const each of given ?? []) {
    const at = each.indexOf('=');
    const name = each.slice(0, at);
    if (at < 1 || !/^[\w.-]{1,64}$/.test(name) || name === '__proto__')
      throw usageError(
        command,
        `--id ${JSON.stringify(each)} is no identity`,
        'Write it like --id customer=42.',
      );
    if (Object.hasOwn(ids, name)) throw usageError(command, `--id ${name} is given twice`);
    // Most often a variable of the script that is not set: all such calls would be one.
    if (at === each.length - 1) throw usageError(command, `--id ${name} is empty`, 'Is a variable not set?');
    ids[name] = each.slice(at + 1);
  }
  return ids;
}

/** Of one file, or of standard input; whatever is in it. */
export function jsonFrom(command: CommandName, path: string): unknown {
  return parsedJson(command, `--id-json ${path}`, smallText(command, path));
}

export function parsedJson(command: CommandName, from: string, text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text, exactNumbers);
    // The last one would count, so that two intents that differ in the first are one.
    const twice = repeatedName(text);
    if (twice !== undefined) throw new SyntaxError(`${JSON.stringify(twice)} is named twice in one object`);
    return parsed;
  } catch (error) {
    throw usageError(
      command,
      `${from} is no JSON (${(error as Error).message})`,
      `Write an object, in quotes for the shell: '{"lead":42}'`,
    );
  }
}

/** A number that JavaScript cannot hold would become its neighbour, and two intents one. */
function exactNumbers(this: unknown, name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  if (decimalOf(context.source) === decimalOf(String(value))) return value;
  const shown = cut(context.source, 60);
  throw new SyntaxError(
    `the number ${shown} of ${JSON.stringify(name)} has more digits than a number keeps; write it as a text`,
  );
}

/** Sign, digits and exponent of a number, however it is written: `1200`, `1.2e3` and `12.00E2` are one. */
function decimalOf(text: string): string | undefined {
  const [, sign, whole, fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const digits = whole + fraction;
  let from = 0;
  let to = digits.length;
  while (digits[from] === '0') from += 1;
  while (to > from && digits[to - 1] === '0') to -= 1;
  if (from === to) return '0';
  return `${sign}${digits.slice(from, to)}e${BigInt(exponent) + BigInt(digits.length - to - fraction.length)}`;
}

/** By --id and by --id-json, which has to be an object: an effect is about named things. */
export function identityOf(
  command: CommandName,
  given: { readonly id: readonly string[] | undefined; readonly 'id-json': string | undefined },
): Readonly<Record<string, unknown>> {
  const ids = idsOf(command, given.id);
  if (given['id-json'] === undefined) return ids;
  const more = jsonFrom(command, given['id-json']);
  if (typeof more !== 'object' || more === null || Array.isArray(more))
    throw usageError(command, '--id-json is no object', 'Write an object: {"lead": 42}.');
  const twice = Object.keys(ids).find((name) => Object.hasOwn(more, name));
  if (twice !== undefined)
    throw usageError(
      command,
      `${JSON.stringify(twice)} is given by --id and by --id-json`,
      'Leave one of them out.',
    );
  return { ...ids, ...more };
}
