// How a command is defined: its name, arguments, options and action. Help, completion and parsing use one definition.

import { parseArgs } from 'node:util';
import type { Duration } from '../core/contract/duration.ts';
import { findSimilar } from '../core/contract/known-fields.ts';
import { parseDuration } from './args/flag-values.ts';
import type { CommandName } from './commands/summaries.ts';
import { text, toggle } from './flags.ts';
import { helpText } from './render/help.ts';
import { textWidth } from './render/wrap.ts';
import { usageError } from './usage.ts';

export interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: true;
  /** The value's name in the help: `<url>`. */
  readonly value?: string;
  readonly choices?: readonly string[];
  /** A duration may stand in place of a choice. */
  readonly orDuration?: true;
  /** What to do instead, for users who write a duration where only the choices are valid. */
  readonly insteadOfDuration?: string;
  readonly help: string;
}

export type Flags = Readonly<Record<string, Flag>>;

type ValueOf<F extends Flag> = F['type'] extends 'boolean'
  ? boolean
  : F extends { readonly choices: readonly (infer Choice)[] }
    ? Choice | (F extends { readonly orDuration: true } ? Extract<Duration, string> : never)
    : string;

export type ValuesOf<All extends Flags> = {
  readonly [Name in keyof All]:
    | (All[Name] extends { multiple: true } ? string[] : ValueOf<All[Name]>)
    | undefined;
};

/** Options of every command. */
export const everywhere = {
  store: text(
    '<url>',
    'the ledger: sqlite:path, postgres://… (default: SEMEL_STORE, otherwise your default ledger)',
  ),
  namespace: text(
    '<name>',
    'the application (default: SEMEL_NAMESPACE, otherwise "default"; commands that list records use all)',
  ),
  json: toggle('print JSON'),
  help: toggle('show this help', 'h'),
} as const satisfies Flags;

export interface Input<All extends Flags> {
  readonly values: ValuesOf<All & typeof everywhere>;
  readonly positionals: readonly string[];
  /** The words after `--`; undefined if there is no `--`. */
  readonly rest: readonly string[] | undefined;
  /** All commands, since a command must not import its siblings. */
  readonly commands: Commands;
}

export type Commands = Readonly<Record<string, () => Promise<{ default: Command }>>>;

export interface Definition<All extends Flags> {
  readonly name: CommandName;
  /** What follows `semel <name>`. */
  readonly takes: string;
  /** A paragraph for the help. */
  readonly about?: string;
  readonly flags: All;
  readonly examples: readonly string[];
  run(input: Input<All>): Promise<number>;
}

export interface Command {
  readonly name: string;
  readonly takes: string;
  readonly flags: Flags;
  help(width: number): string;
  run(args: readonly string[], commands: Commands): Promise<number>;
}

export function command<const All extends Flags>(definition: Definition<All>): Command {
  const flags: Flags = { ...definition.flags, ...everywhere };
  const help = (width: number) => helpText(definition, everywhere, width);
  return {
    name: definition.name,
    takes: definition.takes,
    flags,
    help,
    async run(args, commands) {
      const input = { ...parse(definition.name, flags, args), commands };
      if (input.values.help === true) {
        process.stdout.write(help(textWidth()));
        return 0;
      }
      return definition.run(input as unknown as Input<All>);
    },
  };
}

function parse(name: string, flags: Flags, args: readonly string[]) {
  const end = args.indexOf('--');
  const own = end < 0 ? args : args.slice(0, end);
  checkNames(name, flags, own);
  const { values, positionals } = parseOwn(name, flags, own);
  for (const [flag, { choices, orDuration, insteadOfDuration }] of Object.entries(flags)) {
    const isDuration = (given: unknown) => (parseDuration(given as string) ?? 0) > 0;
    const isRight = (given: unknown) =>
      choices?.includes(given as string) !== false || (orDuration && isDuration(given));
    const wrong = [values[flag] ?? []].flat().find((given) => !isRight(given));
    const words = `${choices?.join(', ')}${orDuration ? ', or a duration such as 24h' : ''}`;
    if (wrong !== undefined)
      throw usageError(
        name,
        `--${flag} must be one of ${words}, not ${JSON.stringify(wrong)}`,
        isDuration(wrong) ? insteadOfDuration : undefined,
      );
  }
  return { values, positionals, rest: end < 0 ? undefined : args.slice(end + 1) };
}

function parseOwn(name: string, flags: Flags, args: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(flags).map(([flag, { type, short, multiple }]) => [
      flag,
      { type, ...(short === undefined ? {} : { short }), ...(multiple === undefined ? {} : { multiple }) },
    ]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // The second sentence of Node's message is about its own API.
    const [sentence = ''] = (error as Error).message.split(/\.\s|\n/);
    throw usageError(name, sentence.replace(/\.$/, ''));
  }
}

function checkNames(name: string, flags: Flags, args: readonly string[]): void {
  for (const arg of args) {
    const [, flag] = /^--([^=]+)/.exec(arg) ?? [];
    if (flag === undefined || Object.hasOwn(flags, flag)) continue;
    const near = findSimilar(Object.keys(flags), flag);
    throw usageError(name, `there is no option --${flag}`, near && `Did you mean --${near}?`);
  }
}
