// Lines of action ledgers kept by hand: `{"key": "…", "ts": "…", "status": "done"}`. Each becomes a record under the
// caller's own key. Refuses to guess the meaning of an unknown status.

import { encodeResult } from '../../../core/codec/codec.ts';
import { callerKey, recordId } from '../../../core/key/key.ts';
import type { PortableRecord } from '../../../semel/index.ts';
import { instantOf } from '../../args/instant.ts';

export type Meaning = 'done' | 'failed' | 'doubt' | 'skip';

export const meanings: readonly Meaning[] = ['done', 'failed', 'doubt', 'skip'];

/** A failure may run again, so there is nothing to remember. What was begun may have landed. */
const usual: Readonly<Record<Meaning, readonly string[]>> = {
  done: words(
    'done ok okay success successful succeeded sent delivered complete completed finished processed posted published ' +
      'created executed landed paid charged refunded true 200 201',
  ),
  skip: words('failed failure fail error errored rejected refused cancelled canceled skipped false'),
  doubt: words(
    'pending started start begin begun running in_progress processing sending queued claimed attempted dispatched ' +
      'unknown in_doubt timeout timed_out retrying',
  ),
  failed: [],
};

/** Statuses of an attempt that has ended; the others say that one has begun. */
export const unknownEndings: ReadonlySet<string> = new Set(words('unknown in_doubt timeout timed_out'));

function words(text: string): readonly string[] {
  return text.split(' ');
}

/** Case, dashes and spaces mean nothing. */
function plainStatus(status: unknown): string {
  return String(status)
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_');
}

export function meaningsWith(mapped: ReadonlyMap<string, Meaning>): ReadonlyMap<string, Meaning> {
  const all = new Map<string, Meaning>();
  for (const meaning of meanings) for (const word of usual[meaning]) all.set(word, meaning);
  for (const [word, meaning] of mapped) all.set(plainStatus(word), meaning);
  return all;
}

/** The status of a line that has none: many such ledgers get a line only when the action is done, which nobody can guess. */
export const noStatus = 'none';

export interface PlainFields {
  readonly key: string;
  readonly time: string;
  readonly status: string;
}

export const usualFields: Readonly<Record<keyof PlainFields, readonly string[]>> = {
  key: ['key', 'idempotency_key', 'idempotencyKey', 'action_key', 'id'],
  time: ['ts', 'time', 'timestamp', '@timestamp', 'at', 'date', 'created_at', 'createdAt'],
  status: ['status', 'state', 'outcome', 'result', 'ok'],
};

interface PlainEntry {
  readonly key: string;
  readonly status: string;
  readonly at: number | undefined;
}

/** What a line says, or what is wrong with it. */
export function entryOf(line: Readonly<Record<string, unknown>>, fields: PlainFields): PlainEntry | string {
  const { [fields.key]: key, [fields.status]: status, [fields.time]: time } = line;
  if (typeof key !== 'string' && typeof key !== 'number') return `it has no \`${fields.key}\``;
  if (typeof key === 'number' && !Number.isSafeInteger(key))
    return `its \`${fields.key}\` is a number that cannot be read exactly`;
  const text = String(key);
  if (text === '' || text.length > 500 || /\p{Cc}/u.test(text) || !text.isWellFormed())
    return `its \`${fields.key}\` is not a text of 1 to 500 characters`;
  if (typeof status === 'object' && status !== null) return `its \`${fields.status}\` is not a word`;
  const at = instantOf(time);
  if (time !== undefined && at === undefined) return `its \`${fields.time}\` is not a time`;
  return { key: text, status: plainStatus(status ?? noStatus), at };
}

export interface Terms {
  readonly namespace: string;
  readonly contract: string;
  readonly windowMs: number;
  readonly owner: string;
  readonly now: number;
}

/** The key stays for good, its value for the window. The args are unknown, so no later call conflicts with it. */
export function recordOf(
  line: Readonly<Record<string, unknown>>,
  { key, at, status }: PlainEntry,
  meaning: Exclude<Meaning, 'skip'>,
  { namespace, contract, windowMs, owner, now }: Terms,
): PortableRecord {
  const whole = callerKey(contract, key);
  const instant = new Date(at ?? now).toISOString();
  const encoded = encodeResult(line, { maxBytes: 1_048_576 });
  const value: Pick<PortableRecord, 'value' | 'omitted'> = encoded.ok
    ? { value: JSON.parse(encoded.text) }
    : { omitted: encoded.detail };
  const error = {
    code: 'FAILED',
    message: `The ledger that it came from says: ${status}.`,
    retriable: false,
  };
  return {
    semel: 1,
    id: recordId(namespace, whole),
    namespace,
    contract,
    key: whole,
    status: meaning === 'done' ? 'succeeded' : meaning === 'failed' ? 'failed' : 'unknown',
    inDoubt: meaning === 'doubt',
    lapsed: false,
    expired: false,
    doubt: meaning === 'doubt',
    attempts: 1,
    fence: 0,
    generation: 0,
    providerKeyFence: 0,
    version: '1',
    effect: 'write-non-idempotent',
    keyed: false,
    owner,
    ...(meaning === 'done' ? value : { error, args: value.value }),
    retention: { windowMs, failureWindowMs: 3_600_000, keep: true },
    createdAt: instant,
    updatedAt: instant,
    settledAt: instant,
    ...(meaning === 'doubt' ? { firstDispatchedAt: instant, lastDispatchedAt: instant } : {}),
    expiresAt: new Date(now + (meaning === 'failed' ? 3_600_000 : windowMs)).toISOString(),
    // Its attempt has long given up.
    inFlightUntil: new Date((at ?? now) + 660_000).toISOString(),
    history: [],
  };
}
