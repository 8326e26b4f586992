// The name of one run of a job: job, slot and ids, in a text that the library takes for `run` and that the commands
// inside the run read back.

import { SemelError } from '../../core/errors.ts';
import { shortDigest } from '../../core/key/key.ts';

export type Ids = Readonly<Record<string, string>>;

export interface RunId {
  readonly job: string;
  readonly slot: string;
  /** Where two zones have a slot of the same name, this tells them apart. */
  readonly startsAt?: number | undefined;
  readonly ids: Ids;
  /** Why the slot is run once more: a run of its own, with effects and steps of its own. */
  readonly again?: string | undefined;
  /** Tells apart runs whose slot has the same name and instant. */
  readonly start?: string | undefined;
}

/** What the library takes for the name of a run. */
const longest = 500;

export function runText({ job, slot, startsAt, ids, again, start }: RunId): string {
  // In one order, whatever the order in which they were typed: it is the same run.
  const sorted = Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1));
  const query = new URLSearchParams(sorted).toString();
  const from = startsAt === undefined ? '' : `~${startsAt.toString(36)}`;
  const repeat = again === undefined ? '' : `!${shortDigest('again', again)}`;
  const own = start === undefined ? '' : `!${shortDigest('start', start)}`;
  return `${encodeURIComponent(job)}@${slot}${from}${own}${repeat}${query === '' ? '' : `?${query}`}`;
}

export function readRun(text: string): RunId | undefined {
  const match = /^([^@]+)@([^?!~]+)(?:~([0-9a-z]+))?(?:![^?]*)?(?:\?(.*))?$/.exec(text);
  if (match === null) return undefined;
  const [, job = '', slot = '', from, query = ''] = match;
  const startsAt = from === undefined ? undefined : Number.parseInt(from, 36);
  const ids = Object.fromEntries(new URLSearchParams(query));
  try {
    return { job: decodeURIComponent(job), slot, ids, ...(startsAt === undefined ? {} : { startsAt }) };
  } catch {
    // Not written by us.
    return undefined;
  }
}

export function checkRun(run: RunId): string {
  const text = runText(run);
  if (text.length <= longest) return text;
  throw new SemelError('INVALID_ARGS', 'The name of the job and its ids are too long together.', {
    path: 'id',
    next: `They have ${text.length} characters as a text; ${longest} is the most. Use a digest as the id.`,
  });
}

/** Names of contracts that jobs have for themselves. After a crash they are run again by design. */
export function isReserved(name: string): boolean {
  return /^(run|turn|step|pick)\./.test(name);
}

const legal = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/**
 * The contract of a name that a person chose, whatever is in it: readable, and never the same for two names. Where the name
 * is changed, a digest of it stands after two dots, which no unchanged name has.
 */
export function contractName(kind: 'run' | 'turn' | 'step' | 'pick' | undefined, name: string): string {
  const prefix = kind === undefined ? '' : `${kind}.`;
  const isLegal = legal.test(name) && !name.includes('..');
  if (isLegal && prefix.length + name.length <= 64) return prefix + name;
  const readable = name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+|-+$/g, '');
  return `${prefix}${readable.slice(0, 40) || 'x'}..${shortDigest('name', name)}`;
}
