// What run, once and step have in common: a name, the command after `--`, and what is said where it could not be started.

import type { EffectReport } from '../jobs/index.ts';
import type { Flags, Input } from './command.ts';
import { complain } from './print.ts';
import type { CommandName } from './summaries.ts';
import { usageError } from './usage.ts';

export interface GuardedLine {
  readonly name: string;
  readonly words: readonly string[];
}

export function guardedLine(
  command: CommandName,
  what: 'job' | 'effect' | 'step',
  { positionals, rest }: Pick<Input<Flags>, 'positionals' | 'rest'>,
  example: string,
): GuardedLine {
  const [name] = positionals;
  if (name === undefined || name === '' || positionals.length > 1)
    throw usageError(command, `it takes the name of one ${what}, and the command after --`);
  if (rest === undefined || rest.length === 0)
    throw usageError(
      command,
      'there is no command',
      `Write it after --: semel ${command} ${name} ${example}`,
    );
  return { name, words: rest };
}

type Ending = Extract<EffectReport, { kind: 'ran' }>['ending'];

export function sayIfNeverStarted({ neverStarted, exit }: Ending): void {
  if (neverStarted)
    complain(exit === 127 ? 'the command was not found' : 'the command could not be executed');
}
