// What `run`, `once` and `step` share: their ledger, the name and the command after `--`, and how an ending is reported.

import { randomBytes } from 'node:crypto';
import type { SemelError } from '../core/errors.ts';
import { isBlank } from '../core/plain.ts';
import { shellWord } from '../core/visible.ts';
import {
  type ChildEnding,
  type GuardOptions,
  type Ids,
  minLeaseMs,
  ownerWithPipe,
  type Report,
  shownOwner,
} from '../jobs/index.ts';
import type { RecordInfo, Semel, SemelOptions } from '../semel/index.ts';
import { type FlagReader, maxTimerMs } from './args/flag-values.ts';
import { isAgent, shownError, shownMessage } from './caller.ts';
import type { Flags, Input } from './command.ts';
import type { CommandName } from './commands/summaries.ts';
import { exitCodeOf } from './exit-code.ts';
import { text } from './flags.ts';
import { chosenNamespace, type LedgerChoice, ledgerFor } from './ledger.ts';
import { type Doubt, explainDoubt } from './render/in-doubt.ts';
import { jsonText } from './render/json-text.ts';
import { complain, printAside, relative } from './render/print.ts';
import { cut } from './render/wrap.ts';
import { usageError } from './usage.ts';

export const guardFlags = {
  timeout: text('<duration>', 'stop the command with TERM after this time (default: none)'),
  grace: text('<duration>', 'time from TERM to KILL (default: 10s)'),
  lease: text('<duration>', 'how long a crashed machine blocks the others; at least 10s (default: 15m)'),
};

export function guardTerms(
  flags: FlagReader<Record<'wait' | 'verify-after' | 'lease' | 'timeout' | 'grace', unknown>>,
) {
  return {
    waitMs: flags.duration('wait', Number.POSITIVE_INFINITY),
    verifyAfterMs: flags.duration('verify-after', 60_000),
    leaseMs: flags.duration('lease', 900_000, { from: minLeaseMs }),
    timeoutMs: flags.duration('timeout', Number.POSITIVE_INFINITY, { to: maxTimerMs }),
    graceMs: flags.duration('grace', 10_000, { to: maxTimerMs }),
  };
}

export function newPipeName(): string {
  return randomBytes(10).toString('hex');
}

export type Guard = Pick<GuardOptions, 'semel' | 'facts' | 'pipeName' | 'isNamespaceChosen' | 'say'>;

/** Opens the ledger, runs the command, and reports how it ended: with --json one line on stderr, otherwise sentences. */
export async function runGuarded(
  options: LedgerChoice & { readonly json: boolean | undefined },
  pipeName: string,
  limits: NonNullable<SemelOptions['limits']>,
  run: (guard: Guard) => Promise<Report>,
  /** Answers the exit code. */
  report: (report: Report, guard: Guard) => Promise<number>,
): Promise<number> {
  await using semel = ledgerFor(options, { make: true, owner: ownerWithPipe(pipeName), limits });
  const isNamespaceChosen = chosenNamespace(options) !== undefined;
  const guard = { semel, facts: await semel.open(), pipeName, isNamespaceChosen, say: complain };
  const ending = await run(guard);
  const code = await report(ending, guard);
  if (!ending.leftBehind) return code;
  // Exits without closing the ledger: the claim stays with the processes that the command left behind.
  // Reading a history writes pending notes first.
  await semel.records.history('run/-').catch(() => undefined);
  process.exit(code);
}

/** `about` starts the JSON line. */
export function createReporter(json: boolean | undefined, about: object, ledger?: string) {
  const shownLedger = ledger === undefined || isAgent() ? {} : { ledger };
  const say = (sentence: string): void => {
    if (!json) complain(sentence);
  };
  /** Answers the exit code. */
  const finish = (status: string, exit: number, more: object = {}): number => {
    if (json) printAside(jsonText({ ...about, status, exit, ...shownLedger, ...more }));
    return exit;
  };
  const refuse = (error: SemelError, doubt?: Doubt): number => {
    if (!json && doubt !== undefined && error.code === 'IN_DOUBT') explainDoubt(error, doubt);
    else say(shownMessage(error));
    return finish(error.code, exitCodeOf(error), { error: shownError(error) });
  };
  return { say, finish, refuse };
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
    throw usageError(command, `expects the name of one ${what}, and the command after --`);
  if (rest === undefined || rest.length === 0)
    throw usageError(
      command,
      'there is no command',
      `Write it after --: semel ${command} ${shellWord(name)} ${example}`,
    );
  return { name, words: rest };
}

/** `mail lead=42 template=welcome`: in a log of many such calls the name alone is not enough. */
export function labelOf(name: string, ids: Readonly<Record<string, unknown>> | Ids): string {
  const parts = Object.entries(ids).map(
    ([field, value]) => `${field}=${typeof value === 'string' ? value : jsonText(value)}`,
  );
  return cut([name, ...parts].join(' '), 120);
}

/** When it was done and by whom: the process that did it, or the person who declared it. */
export async function describeDone(semel: Semel, record: RecordInfo): Promise<string> {
  const at = record.settledAt ?? record.updatedAt;
  const when = `at ${at.toISOString()} (${relative(at)})`;
  const history = await semel.records.history(record.key);
  const verdict = history.findLast(({ type, detail }) => type === 'resolved' && detail.act === 'landed');
  if (verdict !== undefined) return `was declared done ${when} by ${verdict.detail.by}`;
  return `was already done ${when} by ${shownOwner(record.owner)}`;
}

export function describeNoStart(command: readonly string[], { exit, failure = '' }: ChildEnding): string {
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
  EMFILE: 'too many open files; raise the limit (ulimit -n)',
  ENFILE: 'too many open files on this machine',
  EAGAIN: 'too many processes; raise the limit (ulimit -u)',
  ENOMEM: 'not enough memory',
};
