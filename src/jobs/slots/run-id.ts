// The name of one run of a job: job, slot and ids in one text. The library takes it as `run`; commands inside the run
// parse it.

import { SemelError } from '../../core/errors.ts';
import { shortDigest } from '../../core/key/key.ts';

export type Ids = Readonly<Record<string, string>>;

export interface RunId {
  readonly job: string;
  readonly slot: string;
  /** Distinguishes slots of the same name in two zones. */
  readonly startsAt?: number | undefined;
  readonly ids: Ids;
  /** Why the slot is run once more: a separate run, with its own effects and steps. */
  readonly again?: string | undefined;
  /** Distinguishes runs whose slots have the same name and instant. */
  readonly start?: string | undefined;
}

/** The library's limit for the name of a run. */
const maxLength = 500;

export function runText({ job, slot, startsAt, ids, again, start }: RunId): string {
  // Sorted: the order in which ids are typed means nothing.
  const sorted = Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1));
  const query = new URLSearchParams(sorted).toString();
  const from = startsAt === undefined ? '' : `~${startsAt.toString(36)}`;
  const repeat = again === undefined ? '' : `!${shortDigest('again', again)}`;
  const own = start === undefined ? '' : `!${shortDigest('start', start)}`;
  return `${encodeURIComponent(job)}@${slot}${from}${own}${repeat}${query === '' ? '' : `?${query}`}`;
}

export function parseRun(text: string): RunId | undefined {
  const match = /^([^@]+)@([^?!~]+)(?:~([0-9a-z]+))?(?:![^?]*)?(?:\?(.*))?$/.exec(text);
  if (match === null) return undefined;
  const [, job = '', slot = '', from, query = ''] = match;
  const startsAt = from === undefined ? undefined : Number.parseInt(from, 36);
  const ids = Object.fromEntries(new URLSearchParams(query));
  try {
    return { job: decodeURIComponent(job), slot, ids, ...(startsAt === undefined ? {} : { startsAt }) };
  } catch {
    // Not written by semel.
    return undefined;
  }
}

export function checkedRunText(run: RunId): string {
  const text = runText(run);
  if (text.length <= maxLength) return text;
  throw new SemelError('INVALID_ARGS', 'The job name and its ids are too long together.', {
    path: 'id',
    next: `They take ${text.length} characters; the maximum is ${maxLength}. Use a digest as the id.`,
  });
}

/** Contract names that belong to jobs. After a crash these run again by design. */
export function isReserved(name: string): boolean {
  return /^(run|lock|step|pick|step-order)\./.test(name);
}

const legal = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/**
 * The contract for any name that a person chose: readable, and unique per name. A name that has to be changed gets a
 * digest after two dots, which no unchanged name contains.
 */
export function contractName(
  kind: 'run' | 'lock' | 'step' | 'pick' | 'step-order' | undefined,
  name: string,
): string {
  const prefix = kind === undefined ? '' : `${kind}.`;
  const isLegal = legal.test(name) && !name.includes('..');
  if (isLegal && prefix.length + name.length <= 64) return prefix + name;
  // The look-behind keeps it linear: without it, every dash of a long run would be tried as the start of the last one.
  const readable = name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[^A-Za-z0-9]+|(?<!-)-+$/g, '');
  return `${prefix}${readable.slice(0, 40) || 'x'}..${shortDigest('name', name)}`;
}
