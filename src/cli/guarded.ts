// What `run`, `once` and `step` have in common: a name and the command after `--`, what it is about, who did it, why it
// could not start.

import { randomBytes } from 'node:crypto';
import type { SemelError } from '../core/errors.ts';
import { isBlank } from '../core/plain.ts';
import { shellWord } from '../core/visible.ts';
import { type ChildEnding, type Ids, shortestLeaseMs, shownOwner } from '../jobs/index.ts';
import type { RecordInfo, Semel } from '../semel/index.ts';
import { type FlagReader, longestTimerMs } from './args/flag-values.ts';
import { isAgent, shownMessage } from './caller.ts';
import type { Flags, Input } from './command.ts';
import type { CommandName } from './commands/summaries.ts';
import { text } from './flags.ts';
import { chosenNamespace, type LedgerChoice } from './ledger.ts';
import { type Doubtful, tellDoubt } from './render/in-doubt.ts';
import { jsonText } from './render/json-text.ts';
import { complain, cut, printAside, relative } from './render/print.ts';
import { usageError } from './usage.ts';

/** The options of `run` and `once` about their command's life. */
export const guardFlags = {
  timeout: text('<duration>', 'end the command with TERM after this time (default: none)'),
  grace: text('<duration>', 'from TERM to KILL (default: 10s)'),
  lease: text('<duration>', 'how long a dead machine blocks the others (default: 15m)'),
};

export function guardTerms(
  given: FlagReader<Record<'wait' | 'verify-after' | 'lease' | 'timeout' | 'grace', unknown>>,
) {
  return {
    waitMs: given.duration('wait', Number.POSITIVE_INFINITY),
    verifyAfterMs: given.duration('verify-after', 60_000),
    leaseMs: given.duration('lease', 900_000, { from: shortestLeaseMs }),
    timeoutMs: given.duration('timeout', Number.POSITIVE_INFINITY, { to: longestTimerMs }),
    graceMs: given.duration('grace', 10_000, { to: longestTimerMs }),
  };
}

export function newMark(): string {
  return randomBytes(10).toString('hex');
}

/** Who guards, and in which ledger. */
export async function guardIn(semel: Semel, choice: LedgerChoice, mark: string) {
  const isNamespaceChosen = chosenNamespace(choice) !== undefined;
  return { semel, facts: await semel.open(), mark, isNamespaceChosen, say: complain };
}

/** What a guarded command was refused for, unless a program asks: that is told once, in JSON. */
export function tellRefusal(error: SemelError, json: boolean | undefined, doubtful: Doubtful): void {
  if (json) return;
  if (error.code === 'IN_DOUBT') tellDoubt(error, doubtful);
  else complain(shownMessage(error));
}

/** For `--json`: one line about what was done. Answers the exit code. */
export function answering(isJson: boolean | undefined, about: object, ledger: string) {
  return (status: string, exit: number, more: object = {}) => {
    if (isJson) printAside(jsonText({ ...about, status, exit, ...(isAgent() ? {} : { ledger }), ...more }));
    return exit;
  };
}

interface GuardedLine {
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
  if (name === undefined || isBlank(name) || positionals.length > 1)
    throw usageError(command, `it takes the name of one ${what}, and the command after --`);
  if (rest === undefined || rest.length === 0)
    throw usageError(
      command,
      'there is no command',
      `Write it after --: semel ${command} ${shellWord(name)} ${example}`,
    );
  return { name, words: rest };
}

/** `mail lead=42 template=welcome`: with two hundred of them in one log, the name alone tells nothing. */
export function labelOf(name: string, ids: Readonly<Record<string, unknown>> | Ids): string {
  const parts = Object.entries(ids).map(
    ([field, value]) => `${field}=${typeof value === 'string' ? value : jsonText(value)}`,
  );
  return cut([name, ...parts].join(' '), 120);
}

/** When and by whom: of the process that did it, or of the person who said so. */
export async function doneWords(semel: Semel, record: RecordInfo): Promise<string> {
  const at = record.settledAt ?? record.updatedAt;
  const when = `at ${at.toISOString()} (${relative(at)})`;
  const history = await semel.records.history(record.key);
  const said = history.findLast(({ type, detail }) => type === 'resolved' && detail.act === 'landed');
  if (said !== undefined) return `was declared done ${when} by ${said.detail.by}`;
  return `was already done ${when} by ${shownOwner(record.owner)}`;
}

export function couldNotStart(command: readonly string[], { exit, failure = '' }: ChildEnding): string {
  const [file] = command;
  if (exit === 127) return `${file} was not found; is it in the PATH, or written with its folder?`;
  const why = startFailures[failure];
  if (why !== undefined) return `${file} could not be started: ${why}`;
  return ['EACCES', 'EPERM', 'ENOEXEC', 'ENOTDIR'].includes(failure)
    ? `${file} could not be executed; may this user execute it?`
    : `${file} could not be started (${failure})`;
}

const startFailures: Readonly<Record<string, string>> = {
  E2BIG: 'its arguments and environment are too long',
  EMFILE: 'too many files are open; raise the limit (ulimit -n)',
  ENFILE: 'too many files are open on this machine',
  EAGAIN: 'there are too many processes; raise the limit (ulimit -u)',
  ENOMEM: 'there is not enough memory',
};

/**
 * Ends this process without a word to the ledger about what it holds: that stays with the processes that the command
 * left behind, and is judged by their life.
 */
export async function leave(semel: Semel, code: number): Promise<never> {
  // What is to be in the history is written before.
  await semel.records.history('run/-').catch(() => undefined);
  process.exit(code);
}
