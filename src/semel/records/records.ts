// Reads the ledger and decides about its records. Every act names the state that was looked at, and is recorded.

import { formatRef, isCallsNamespace } from '../../call/index.ts';
import { type Clock, Moment, type Random, toInstant } from '../../core/clock.ts';
import type { Status } from '../../core/contract/words.ts';
import { SemelError } from '../../core/errors.ts';
import { recordId } from '../../core/key/key.ts';
import { pages } from '../../core/paging.ts';
import type { Ledger } from '../../ledger/index.ts';
import { reportedError } from '../../rules/state.ts';
import type { Act, Page, StoredRecord, StoreEvent } from '../../store/store.ts';
import { isRootsNamespace } from '../place/roots.ts';
import { type Resolution, resolveError, toAct } from './decisions.ts';
import { type RecordInfo, toRecordInfo } from './record-info.ts';
import { createTransfer, type Transfer } from './transfer.ts';

export interface RecordQuery {
  readonly contract?: string;
  /** Only keys that start so. */
  readonly prefix?: string;
  readonly status?: Status;
  readonly inDoubt?: boolean;
  readonly conversation?: string;
  /** The `next` of the page before. */
  readonly after?: string;
  /** @default 100 */
  readonly limit?: number;
  /** Look at about so many rows of an embedded ledger; the page may then be short. @default as many as the page needs */
  readonly rows?: number;
  /** Ends a long search. */
  readonly signal?: AbortSignal;
}

export interface FindOptions {
  /** Ends a long search: by its id, a record is looked for from the ledger's beginning. */
  readonly signal?: AbortSignal;
}

export interface ActOptions extends FindOptions {
  /** Who decides. @default the user of this process */
  readonly by?: string;
  readonly note?: string;
  /** Also while an attempt holds its lease, and before "not landed" can be known. */
  readonly force?: boolean;
}

export interface ResolveOptions extends ActOptions {
  /** When the target was looked at, if not just now: "not landed" is judged as of then. */
  readonly lookedAt?: Date;
}

export interface DoubtGroup {
  readonly contract: string;
  readonly error: string;
  readonly refs: readonly string[];
}

export interface Records extends Transfer {
  /** By key or by id. */
  get(keyOrId: string, options?: FindOptions): Promise<RecordInfo | undefined>;
  list(query?: RecordQuery): Promise<Page<RecordInfo>>;
  history(keyOrId: string): Promise<readonly StoreEvent[]>;
  /** Adds plain data to its history: what was seen, where it is, who was informed. */
  annotate(keyOrId: string, detail: Readonly<Record<string, unknown>>): Promise<void>;
  /** Lists every namespace that has held records. */
  namespaces(): Promise<readonly string[]>;
  /** Ends the window of a settled record now: the next call executes. By key, id, or ref: only as it was looked at. */
  forget(keyOrIdOrRef: string, options?: ActOptions): Promise<RecordInfo>;
  /** Makes a failure free again, or a given-up record an open question. By key, id, or ref. */
  reopen(keyOrIdOrRef: string, options?: ActOptions): Promise<RecordInfo>;
  /** Removes expired records in small batches, or only counts them; answers how many. Of all namespaces. */
  prune(options?: { readonly batch?: number; readonly dryRun?: boolean }): Promise<number>;
}

export interface Doubts {
  /** What is in doubt, and what died before it dispatched anything and was not called again. */
  list(query?: Pick<RecordQuery, 'contract' | 'after' | 'limit' | 'signal'>): Promise<Page<RecordInfo>>;
  /** The same by contract and error, largest first; of the first `limit` records. @default all of them */
  groups(options?: Pick<RecordQuery, 'contract' | 'limit' | 'signal'>): Promise<readonly DoubtGroup[]>;
  /** Each record under its own fence: `<id>@<fence>` as it was looked at, or its key in place of the id. */
  resolve(ref: string, resolution: Resolution, options?: ResolveOptions): Promise<RecordInfo>;
}

interface RecordsSource {
  readonly ledger: Ledger;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly user: string;
  /** The system's user, whatever `by` says. */
  readonly login: string;
  readonly maxResultBytes: number;
  readonly warnOnce?: (message: string) => void;
}

/** Held in memory at once: a record may have a megabyte. */
const recordsAtOnce = 100;

export function createRecords({
  ledger,
  namespace,
  clock,
  random,
  user,
  login,
  maxResultBytes,
  warnOnce = () => undefined,
}: RecordsSource): {
  records: Records;
  doubts: Doubts;
} {
  async function* all(query: RecordQuery): AsyncGenerator<StoredRecord> {
    const about = { ...query, namespace, limit: query.limit ?? recordsAtOnce };
    for await (const page of pages((from) => ledger.list({ ...about, ...from }), query.after)) {
      query.signal?.throwIfAborted();
      warnOfDamage(page.damaged);
      yield* page.items;
    }
  }

  function warnOfDamage(damaged: Page<unknown>['damaged'] = []): void {
    for (const { namespace: where, key, problem } of damaged)
      warnOnce(`The record ${key} of ${where} cannot be read and is left out: ${problem}.`);
  }

  /** Reports a record whose texts cannot be decoded like one that the store cannot read. */
  function toReadablePage({ items, next, damaged = [], looked }: Page<StoredRecord>): Page<RecordInfo> {
    const infos: RecordInfo[] = [];
    const unreadable = [...damaged];
    for (const record of items) {
      try {
        infos.push(toRecordInfo(record));
      } catch (error) {
        if (!(error instanceof SemelError)) throw error;
        unreadable.push({ namespace, key: record.key, problem: error.happened });
      }
    }
    warnOfDamage(unreadable);
    return {
      items: infos,
      next,
      ...(looked === undefined ? {} : { looked }),
      ...(unreadable.length === 0 ? {} : { damaged: unreadable }),
    };
  }

  /** Open records first: they are few, and they are what people name by id. */
  async function find(keyOrId: string, { signal }: FindOptions): Promise<StoredRecord | undefined> {
    if (keyOrId.includes('/')) return ledger.read(namespace, keyOrId);
    if (keyOrId === '')
      throw new SemelError('INVALID_ARGS', 'No record was named.', {
        path: 'key',
        next: 'Pass its key or id.',
      });
    const named = (record: StoredRecord) => recordId(namespace, record.key).startsWith(keyOrId);
    const until = signal === undefined ? {} : { signal };
    for (const status of ['unknown', 'running', undefined] as const) {
      const found: StoredRecord[] = [];
      for await (const record of all(status === undefined ? until : { ...until, status }))
        if (named(record)) found.push(record);
      if (found.length > 1)
        throw new SemelError('INVALID_ARGS', `${found.length} records start with ${keyOrId}.`, {
          path: 'id',
          next: 'Write more of it.',
        });
      if (found[0] !== undefined) return found[0];
    }
    return undefined;
  }

  async function resolveRecord(
    record: StoredRecord,
    what: Act,
    { by, note, force }: ActOptions,
    decidedAt = record.readAt,
  ): Promise<RecordInfo> {
    const answer = await ledger.resolve({
      namespace,
      key: record.key,
      seen: { fence: record.fence, dispatchedAt: record.lastDispatchedAt },
      decidedAt,
      act: what,
      token: random.token(),
      by: by ?? user,
      login,
      note: note ?? null,
      force: force ?? false,
    });
    if (!answer.ok) throw resolveError(record, answer.why, answer.record);
    return toRecordInfo(answer.record);
  }

  async function findOrThrow(keyOrId: string, options: FindOptions = {}): Promise<StoredRecord> {
    const record = await find(keyOrId, options);
    if (record === undefined)
      throw new SemelError('INVALID_ARGS', `There is no record ${keyOrId} in ${namespace}.`, {
        path: 'key',
        next: 'Is it in another namespace (`namespace`, `--namespace`)? `semel ls` lists the records, as does `semel.records.list()`.',
      });
    return record;
  }

  /** A ref names one state of a record: the one that was looked at. */
  async function findAsSeen(
    named: string,
    options: FindOptions,
  ): Promise<{ record: StoredRecord; isRef: boolean }> {
    const at = named.lastIndexOf('@');
    if (at < 0) return { record: await findOrThrow(named, options), isRef: false };
    const record = await findOrThrow(named.slice(0, at), options);
    const now = formatRef(record);
    if (now.slice(now.indexOf('@')) !== named.slice(at)) throw resolveError(record, 'stale', record);
    return { record, isRef: true };
  }

  const records: Records = {
    async get(keyOrId, options = {}) {
      const record = await find(keyOrId, options);
      return record && toRecordInfo(record);
    },
    async list(query = {}) {
      const page = await ledger.list({ ...query, namespace, limit: query.limit ?? 100 });
      return toReadablePage(page);
    },
    async history(keyOrId) {
      const record = keyOrId.includes('/') ? undefined : await findOrThrow(keyOrId);
      return ledger.history(namespace, record?.key ?? keyOrId);
    },
    async annotate(keyOrId, detail) {
      ledger.annotate(await findOrThrow(keyOrId), detail);
    },
    namespaces: async () => (await ledger.namespaces()).filter((name) => !isInternalNamespace(name)),
    forget: async (named, options = {}) =>
      resolveRecord((await findAsSeen(named, options)).record, { type: 'forget' }, options),
    reopen: async (named, options = {}) =>
      resolveRecord((await findAsSeen(named, options)).record, { type: 'reopen' }, options),
    async prune({ batch = 500, dryRun = false } = {}) {
      if (dryRun) return ledger.countExpired();
      let pruned = 0;
      for (let last = -1; last !== 0; pruned += last) last = await ledger.prune(batch);
      return pruned;
    },
    ...createTransfer({ ledger, namespace, clock, user, all }),
  };

  const doubts: Doubts = {
    async list(query = {}) {
      const limit = query.limit ?? 100;
      const items: RecordInfo[] = [];
      let next: string | undefined;
      for await (const record of openRecords({ ...query, limit: Math.min(500, limit + 1) })) {
        if (items.length === limit) {
          next = items.at(-1)?.key;
          break;
        }
        items.push(...toReadablePage({ items: [record], next: undefined }).items);
      }
      return { items, next };
    },
    async groups({ limit = Number.POSITIVE_INFINITY, ...query } = {}) {
      let left = limit;
      const groups = new Map<string, { contract: string; error: string; refs: string[] }>();
      for await (const record of openRecords(query)) {
        left -= 1;
        if (left < 0) break;
        const error =
          reportedError(record)?.message ?? 'the process that ran it exited without reporting a result';
        const name = `${record.contract}\0${error}`;
        const group = groups.get(name) ?? { contract: record.contract, error, refs: [] };
        group.refs.push(formatRef(record));
        groups.set(name, group);
      }
      return [...groups.values()].sort((a, b) => b.refs.length - a.refs.length);
    },
    async resolve(ref, resolution, options = {}) {
      const asked = new Moment(clock);
      const saidAt = toInstant('lookedAt', options.lookedAt);
      const what = toAct(resolution, maxResultBytes);
      const { record, isRef } = await findAsSeen(ref, options);
      if (!isRef)
        throw new SemelError(
          'INVALID_ARGS',
          `${ref} has no fence, so it does not say which state of the record you looked at.`,
          {
            path: 'ref',
            next: `For the present state, write ${formatRef(record)}.`,
          },
        );
      // The person looked before this call. The process may have been suspended since; or the machine, which stops `mono`.
      const decidedAt = record.readAt - asked.passedMs(clock);
      return resolveRecord(record, what, options, Math.min(decidedAt, saidAt ?? decidedAt));
    },
  };

  /** Both kinds in the order of their keys, and at most `limit` of them. */
  async function* openRecords(query: RecordQuery): AsyncGenerator<StoredRecord> {
    const unknown = all({ ...query, status: 'unknown' });
    const lapsed = onlyLapsed(all({ ...query, status: 'running' }));
    let [one, other] = [await unknown.next(), await lapsed.next()];
    while (!one.done || !other.done) {
      if (other.done || (!one.done && one.value.key < other.value.key)) {
        yield one.value as StoredRecord;
        one = await unknown.next();
      } else {
        yield other.value;
        other = await lapsed.next();
      }
    }
  }

  return { records, doubts };
}

/** Where alerts are recorded that were sent: in one place for all namespaces. */
export const alertsNamespace = 'semel (alerts)';

/** Holds notes of semel's own, not records of calls. */
export function isInternalNamespace(name: string): boolean {
  return isCallsNamespace(name) || isRootsNamespace(name) || name === alertsNamespace;
}

async function* onlyLapsed(records: AsyncIterable<StoredRecord>): AsyncGenerator<StoredRecord> {
  for await (const record of records) if (record.lapsed) yield record;
}
