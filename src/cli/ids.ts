// `--id name=value`: the identity of a run or an effect, as it is typed.

import type { Ids } from '../jobs/index.ts';
import { smallText } from './input.ts';
import type { CommandName } from './summaries.ts';
import { usageError } from './usage.ts';

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

const mostBytes = 1_048_576;

/** Of one file, or of standard input; whatever is in it. */
export function jsonFrom(command: CommandName, path: string): unknown {
  return parsedJson(command, `--id-json ${path}`, smallText(command, path, mostBytes));
}

export function parsedJson(command: CommandName, from: string, text: string): unknown {
  try {
    return JSON.parse(text, exactNumbers);
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
  if (typeof value !== 'number' || context?.source === undefined || !/^-?\d{16,}$/.test(context.source))
    return value;
  if (BigInt(context.source) === BigInt(value)) return value;
  throw new SyntaxError(
    `the number ${context.source} of ${JSON.stringify(name)} is too large; write it as a text`,
  );
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
