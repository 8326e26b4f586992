// Who runs the command: an operator, or an agent (or guarded command) that must not judge its own effects. A guard rail,
// not a wall: a process with its operator's rights can hide what it is, or write the ledger's file itself.

import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { type ErrorValue, isSemelError, SemelError } from '../core/errors.ts';
import { errorForModel } from '../guard/index.ts';
import type { CommandName } from './commands/summaries.ts';

/** Variables that agents, and semel's own guards, set for every command they start. */
const marks: Readonly<Record<string, string>> = {
  SEMEL_RUN: 'a command of `semel run`',
  SEMEL_HELD: 'a guarded command',
  SEMEL_AGENT: 'an agent',
  AI_AGENT: 'an agent',
  ANTIGRAVITY_AGENT: 'Antigravity',
  AUGMENT_AGENT: 'Augment',
  CLAUDECODE: 'Claude Code',
  CLAUDE_CODE: 'Claude Code',
  CLINE_ACTIVE: 'Cline',
  CODEX_CI: 'Codex',
  CODEX_SANDBOX: 'Codex',
  CODEX_SANDBOX_NETWORK_DISABLED: 'Codex',
  CODEX_THREAD_ID: 'Codex',
  CURSOR_AGENT: 'Cursor',
  GEMINI_CLI: 'Gemini CLI',
  GOOSE_TERMINAL: 'goose',
  OPENCODE: 'OpenCode',
  OPENCODE_CLIENT: 'OpenCode',
  QWEN_CODE: 'Qwen Code',
};

type Environment = Readonly<Record<string, string | undefined>>;

export interface Caller {
  /** The agent's name; undefined for an operator. */
  readonly agent: string | undefined;
  /** The operator who lets this agent decide. */
  readonly operator: string | undefined;
}

let cachedCaller: Caller | undefined;

/** The caller of this process. First called when the ledger is opened, before this process has pipes of its own. */
export function caller(): Caller {
  cachedCaller ??= callerOf(process.env, environmentsAbove, environmentsInSession, isInsideRun);
  return cachedCaller;
}

type Above = () => Iterable<Environment | undefined> | undefined;

/**
 * `above` lists the environments of the processes above this one, nearest first; undefined for one that cannot be read.
 * `inSession` lists only those of this process's session. `isInside` goes by a guard's pipes instead of the environment.
 */
export function callerOf(
  env: Environment,
  above: Above,
  inSession: Above = () => undefined,
  isInside: () => boolean = () => false,
): Caller {
  const found = Object.keys(marks).filter((name) => isSet(env[name]));
  const [first = hiddenIn(inSession) ?? (isInside() ? 'SEMEL_RUN' : undefined)] = found;
  if (first === undefined) return { agent: undefined, operator: undefined };
  return {
    agent: marks[first],
    operator: found.length === 0 ? grantAbove(above) : grantIn(env, found, above),
  };
}

/** Marks that semel sets itself. Agents' marks may be missing for innocent reasons, so only these count when hidden. */
const ownMarks: readonly string[] = ['SEMEL_RUN', 'SEMEL_HELD', 'SEMEL_AGENT'];

function hasOwnMark(env: Environment): boolean {
  return ownMarks.some((name) => isSet(env[name]));
}

/**
 * A mark that was removed on the way (`env -u SEMEL_RUN semel resolve …`): a process above still has it. Only within one
 * session: a login, a cron daemon or a terminal started below a guard begins another one, and belongs to an operator.
 */
function hiddenIn(inSession: Above): string | undefined {
  for (const each of inSession() ?? []) {
    const mark = ownMarks.find((name) => isSet(each?.[name]));
    if (mark !== undefined) return mark;
  }
  return undefined;
}

/** Whether to hide the ledger's location and commands that decide. */
export function isAgent({ agent, operator }: Caller = caller()): boolean {
  return agent !== undefined && operator === undefined;
}

/** Refuses an agent. The message must not say how to get around it: the agent reads it. */
export function mustBeOperator(command: CommandName, act: string): void {
  if (!isAgent()) return;
  throw new SemelError(
    'NOT_PERMITTED',
    `${act} is up to the operator, but ${caller().agent} ran \`semel ${command}\`.`,
    {
      next: 'Nothing was changed. Do not try another way: tell the user what has to be decided, and the id of the record.',
    },
  );
}

export const personDecides = 'A person has to check whether it landed, and decide. Do not repeat it.';

/** An error as the caller may read it: an agent sees neither commands that decide nor the ledger's location. */
export function shownError(error: SemelError): SemelError | ErrorValue {
  return isAgent() ? errorForModel(error) : error;
}

export function shownMessage(error: SemelError): string {
  if (!isAgent()) return `${error.message}${moreAbout(error)}`;
  const { message, correctiveAction } = errorForModel(error);
  return `${message} ${correctiveAction}`;
}

/** The message of an error that ended a command. Problems with a guarded effect's ledger are for the operator only. */
export function thrownMessage(command: string, error: unknown): string {
  const isGuarded = command === 'once' || command === 'run' || command === 'step';
  if (isGuarded && isSemelError(error) && error.code.startsWith('STORE_')) return shownMessage(error);
  if (isSemelError(error)) return `${error.message}${moreAbout(error)}`;
  return error instanceof Error ? error.message : String(error);
}

/** A mistyped command line needs the help, not an explanation. */
function moreAbout({ code, message }: SemelError): string {
  if (message.includes('semel explain')) return '';
  return code === 'INVALID_ARGS' || code === 'CONTRACT_INVALID' ? '' : ` (semel explain ${code})`;
}

/** Ends a sentence. */
export function ledgerNote(location: string): string {
  return isAgent() ? '' : ` (ledger ${location})`;
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && !['', '0', 'false'].includes(value);
}

/**
 * The operator grants with SEMEL_OPERATOR in the environment that started the agent. What the agent sets for its own
 * commands does not count: the process above all marked ones must have it too.
 */
function grantIn(env: Environment, found: readonly string[], above: Above): string | undefined {
  const operator = env.SEMEL_OPERATOR || undefined;
  const outside = operator === undefined ? undefined : above();
  // Without /proc only the variable itself can be checked.
  if (outside === undefined) return operator;
  let last: Environment | undefined;
  let isOutside = false;
  for (const each of outside) {
    if (isOutside) {
      // A guard further up: the marks were removed on the way, a grant was added, and other marks after it.
      if (each !== undefined && hasOwnMark(each))
        return grantAbove(above) === operator ? operator : undefined;
      continue;
    }
    if (each === undefined) return undefined;
    last = each;
    isOutside = !hasOwnMark(each) && !found.some((name) => isSet(each[name]));
  }
  return last?.SEMEL_OPERATOR === operator ? operator : undefined;
}

/** If the marks were removed, a grant may have been added: only one above the outermost guard counts. */
function grantAbove(above: Above): string | undefined {
  let outside: Environment | undefined;
  let isBelow = true;
  for (const each of above() ?? []) {
    if (each === undefined) break;
    if (hasOwnMark(each)) {
      outside = undefined;
      isBelow = false;
    } else if (!isBelow) outside ??= each;
  }
  return outside?.SEMEL_OPERATOR || undefined;
}

function environmentsAbove(): Iterable<Environment | undefined> | undefined {
  return hasProc() ? readAbove(process.ppid, { markBelowGuard: true }) : undefined;
}

function environmentsInSession(): Iterable<Environment | undefined> | undefined {
  return hasProc() ? readAbove(process.ppid, { onlySession: statOf('self').session }) : undefined;
}

/** A pipe of a run, as the kernel names it, or of one that has ended: see src/jobs/liveness/liveness.ts and pipes.ts. */
const runPipe = /live\/[^/]+\/(spare\/)?[0-9a-f]{20}(\.pipes\/\w+)?( \(deleted\))?$/;

/**
 * Everything a guard starts inherits its pipes, even in another session (`setsid`). If no process stands between this one
 * and its guard (`semel run job -- env -u SEMEL_RUN semel resolve …`), no environment above has a mark, but the guard has pipes.
 */
function isInsideRun(): boolean {
  if (!hasProc()) return false;
  if (holdsRunPipe('self')) return true;
  for (let { parent, session } = statOf('self'); parent > 0; ) {
    try {
      const above = statOf(parent);
      if (holdsRunPipe(parent)) return true;
      // A guard may begin a session for its command, so the process above a session's first one was checked too.
      if (above.session !== session) return false;
      parent = above.parent;
    } catch {
      return false;
    }
  }
  return false;
}

/** The end of a pipe that only the command of a guard and what it starts hold, not the guard itself. */
const guardedPipe = /live\/[^/]+\/(spare\/)?[0-9a-f]{20}\.pipes\/descendants( \(deleted\))?$/;

function isGuarded(pid: number): boolean {
  // The guard holds it only for writing.
  const isRead = (name: string) =>
    /^flags:\s*\d*0$/m.test(readFileSync(`/proc/${pid}/fdinfo/${name}`, 'utf8'));
  return holdsPipe(pid, guardedPipe, isRead);
}

function holdsRunPipe(pid: number | 'self'): boolean {
  return holdsPipe(pid, runPipe);
}

function holdsPipe(
  pid: number | 'self',
  pipe: RegExp,
  isMeant: (name: string) => boolean = () => true,
): boolean {
  const folder = `/proc/${pid}/fd`;
  const isRunPipe = (name: string) => {
    try {
      return pipe.test(readlinkSync(`${folder}/${name}`)) && isMeant(name);
    } catch {
      // Closed in the meantime.
      return false;
    }
  };
  try {
    return readdirSync(folder).some(isRunPipe);
  } catch {
    // Another user's process, or gone.
    return false;
  }
}

function hasProc(): boolean {
  return existsSync('/proc/self/environ');
}

interface Reading {
  readonly onlySession?: number;
  /** A process below a guard counts as marked, since an `exec` may have dropped its marks, even if its parent has gone. */
  readonly markBelowGuard?: boolean;
}

function* readAbove(
  first: number,
  { onlySession, markBelowGuard = false }: Reading,
): Generator<Environment | undefined> {
  for (let pid = first; pid > 0; ) {
    try {
      const { parent, session } = statOf(pid);
      if (onlySession !== undefined && session !== onlySession) return;
      const entries = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      const env = Object.fromEntries(
        entries.map((entry) => [entry.split('=', 1)[0], entry.slice(entry.indexOf('=') + 1)]),
      );
      const isBelowGuard = markBelowGuard && (holdsRunPipe(parent) || isGuarded(pid));
      yield isBelowGuard ? { ...env, SEMEL_RUN: 'by its guard' } : env;
      pid = parent;
    } catch {
      yield undefined;
      return;
    }
  }
}

function statOf(pid: number | 'self'): { readonly parent: number; readonly session: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // After the process name, which may contain anything.
  const [, parent, session] = /^.*\) \S (\d+) \d+ (\d+)/s.exec(stat) ?? [];
  return { parent: Number(parent ?? 0), session: Number(session ?? 0) };
}
