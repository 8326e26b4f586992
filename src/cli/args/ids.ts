// `--id name=value` and `--id-json`: the identity of a run or an effect.

import { repeatedName } from '../../core/key/repeated-name.ts';
import type { Ids } from '../../jobs/index.ts';
import type { CommandName } from '../commands/summaries.ts';
import { cut } from '../render/wrap.ts';
import { usageError } from '../usage.ts';
import { smallText } from './input.ts';

export function idsOf(
  command: CommandName,
  given: readonly string[] | undefined,
  flag: 'id' | 'content' = 'id',
): Ids {
  const ids: Record<string, string> = {};
  for (const each of given ?? []) {
    const at = each.indexOf('=');
    const name = each.slice(0, at);
    if (at < 1 || !/^[\w.-]{1,64}$/.test(name) || name === '__proto__')
      throw usageError(
        command,
        `--${flag} ${JSON.stringify(each)} is not a name with a value`,
        `Write it like --${flag} customer=42.`,
      );
    if (Object.hasOwn(ids, name)) throw usageError(command, `--${flag} ${name} is given twice`);
    // Usually an unset variable of the script: all such calls would count as one.
    if (at === each.length - 1 && flag === 'id')
      throw usageError(command, `--id ${name} is empty`, 'Check for an unset variable.');
    ids[name] = each.slice(at + 1);
  }
  return ids;
}

/** `given` is an object in JSON, a file, or - for stdin. A file whose name begins with `{` is written ./{… */
export function readJson(command: CommandName, given: string): unknown {
  if (given.startsWith('{')) return parseJson(command, '--id-json', given);
  return parseJson(command, `--id-json ${given}`, smallText(command, given));
}

export function parseJson(command: CommandName, from: string, text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text, exactNumbers);
    // JSON.parse keeps the last one: intents that differ in the first would be one.
    const twice = repeatedName(text);
    if (twice !== undefined) throw new SyntaxError(`${JSON.stringify(twice)} appears twice in one object`);
    return parsed;
  } catch (error) {
    throw usageError(
      command,
      `${from} is not JSON (${(error as Error).message})`,
      `Write an object, in quotes for the shell: '{"lead":42}'`,
    );
  }
}

/** A number that JavaScript cannot represent would be rounded, and two intents become one. */
function exactNumbers(this: unknown, name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  if (decimalOf(context.source) === decimalOf(String(value))) return value;
  const shown = cut(context.source, 60);
  throw new SyntaxError(
    `the number ${shown} of ${JSON.stringify(name)} has too many digits; write it as a string`,
  );
}

/** Sign, digits and exponent of a number, in one spelling: `1200`, `1.2e3` and `12.00E2` are one. */
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

/** Merges --id and --id-json, which must be an object. */
export function identityOf(
  command: CommandName,
  given: { readonly id: readonly string[] | undefined; readonly 'id-json': string | undefined },
): Readonly<Record<string, unknown>> {
  const ids = idsOf(command, given.id);
  if (given['id-json'] === undefined) return ids;
  const more = readJson(command, given['id-json']);
  if (typeof more !== 'object' || more === null || Array.isArray(more))
    throw usageError(command, '--id-json is not an object', 'Write an object: {"lead": 42}.');
  const twice = Object.keys(ids).find((name) => Object.hasOwn(more, name));
  if (twice !== undefined)
    throw usageError(
      command,
      `${JSON.stringify(twice)} is in --id and in --id-json`,
      'Leave one of them out.',
    );
  return { ...ids, ...more };
}
