// `--id name=value`: the identity of a run or an effect, as it is typed.

import { readFileSync } from 'node:fs';
import type { Ids } from '../jobs/index.ts';
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
    ids[name] = each.slice(at + 1);
  }
  return ids;
}

const mostBytes = 1_048_576;

/** From a file or from stdin: an object, whatever is in it. */
export function idsFromJson(
  command: CommandName,
  path: string | undefined,
): Readonly<Record<string, unknown>> {
  if (path === undefined) return {};
  let text: string;
  try {
    text = readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw usageError(
      command,
      `--id-json ${JSON.stringify(path)} cannot be read (${(error as Error).message})`,
    );
  }
  if (text.length > mostBytes)
    throw usageError(command, '--id-json is too large', 'An identity is a few fields.');
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    throw usageError(command, '--id-json is no JSON', 'Write an object: {"lead": 42}.');
  }
  throw usageError(command, '--id-json is no object', 'Write an object: {"lead": 42}.');
}
