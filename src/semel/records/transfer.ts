// Records that come from another ledger, and leave for one. They arrive by the rules of the store: a claim that loses
// to whatever is there, and a settle. What is done stays done, what is open stays open, and nothing is overwritten.

import type { Clock } from '../../core/clock.ts';
import type { Status } from '../../core/contract/words.ts';
import { SemelError } from '../../core/errors.ts';
import { digest } from '../../core/key/key.ts';
import type { Ledger } from '../../ledger/index.ts';
import { fieldsOfKind, showFields } from '../../rules/record.ts';
import type { ClaimRequest, Retention, StoredRecord, StoredResult } from '../../store/store.ts';
import { farAway, findRecordProblem, type PortableRecord, toPortable } from './portable.ts';

export type ImportResult =
  | {
      readonly imported: true;
      readonly as: 'succeeded' | 'failed' | 'in doubt' | 'link';
      readonly key: string;
    }
  | { readonly imported: false; readonly key: string; readonly because: string };

export interface ExportQuery {
  readonly contract?: string;
  readonly status?: Status;
  readonly inDoubt?: boolean;
  /** Asked before the history is read. */
  readonly only?: (record: StoredRecord) => boolean;
}

export interface Transfer {
  /** Records in the order of their keys, as plain JSON with their history; of as many as there are. */
  export(query?: ExportQuery): AsyncIterable<PortableRecord>;
  /** Takes in a record of another ledger, unless there is one of its key. Doing it twice changes nothing. */
  import(record: PortableRecord, options?: { readonly dryRun?: boolean }): Promise<ImportResult>;
}

interface TransferSource {
  readonly ledger: Ledger;
  readonly namespace: string;
  readonly clock: Clock;
  readonly user: string;
  readonly all: (query: Omit<ExportQuery, 'only'>) => AsyncIterable<StoredRecord>;
}

/** A worker may dispatch it in the other ledger this long after the look, where nobody knows better. */
const unknownNetworkMs = 11 * 60_000;
const failureMs = 3_600_000;
const maxHistory = 100;

export function createTransfer({ ledger, namespace, clock, user, all }: TransferSource): Transfer {
  return {
    async *export({ only, ...query } = {}) {
      for await (const record of all(query))
        if (only?.(record) ?? true) yield toPortable(record, await ledger.history(namespace, record.key));
    },
    async import(record, { dryRun = false } = {}) {
      checkRecord(record, namespace);
      const { key } = record;
      const as = decideImport(record, clock.now());
      if (typeof as !== 'string') return { imported: false, key, because: as.because };
      const obstacle = dryRun ? await findObstacle(key, as) : await importRecord(record, as);
      if (obstacle !== undefined) return { imported: false, key, because: obstacle };
      return { imported: true, as: as === 'given up' ? 'failed' : as, key };
    },
  };

  /** What `importRecord` would find, for a dry run. */
  async function findObstacle(key: string, as: ImportAs): Promise<string | undefined> {
    const there = await ledger.read(namespace, key);
    // Newer forms of its contract answer for it; a link arrives beside those that are there.
    const newer = as === 'link' ? [] : (there?.movedTo ?? []);
    const records = [there, ...(await Promise.all(newer.map((each) => ledger.read(namespace, each))))];
    const obstacle = records.find((each) => each !== undefined && each.movedTo === null && !isFree(each));
    return obstacle && describeExisting(obstacle);
  }

  /** Why it is left out; undefined: it is taken in. */
  async function importRecord(record: PortableRecord, as: ImportAs): Promise<string | undefined> {
    if (as === 'link') return importLinks(record);
    // Not random: an import that was cut off is the same claim when it is asked again, and goes on.
    const from = [record.key, String(record.generation), String(record.fence)];
    const token = digest('semel/import', namespace, ...from, as);
    const answer = await ledger.claim(toClaimRequest(record, as, token, clock.now()));
    if (answer.is !== 'execute') return answer.is === 'gone' ? 'it is gone' : describeExisting(answer.record);
    // Its key may lead to that of a newer form of its contract.
    const { key, fence, generation } = answer.record;
    const { record: settled } = await ledger.settle({
      ...{ namespace, key, token, fence, generation, keyed: record.keyed, found: false },
      outcome: as === 'succeeded' || as === 'failed' ? as : 'unknown',
      result: toStoredResult(record, as),
      error: as === 'succeeded' ? null : (record.error ?? inDoubtError(record)),
    });
    if (settled === undefined) return 'it was removed meanwhile';
    ledger.annotate(settled, importNote(record));
    if (as === 'given up') await giveUp(settled, record, token);
    return undefined;
  }

  /** The records that it points to are imported separately, before or after it. */
  async function importLinks(record: PortableRecord): Promise<string | undefined> {
    const { key: older, movedTo = [] } = record;
    for (const key of movedTo) {
      const token = digest('semel/import', namespace, older, key, 'link');
      const request = toClaimRequest({ ...record, key }, 'link', token, clock.now());
      await ledger.link({ ...request, olderKeys: [older] });
    }
    const there = await ledger.read(namespace, older);
    if (there === undefined) return 'this store keeps no links';
    return there.movedTo === null ? describeExisting(there) : undefined;
  }

  async function giveUp(settled: StoredRecord, { error }: PortableRecord, token: string): Promise<void> {
    const reason = (error?.message ?? '').replace(/^Given up, may have landed: /, '');
    await ledger.resolve({
      ...{ namespace, key: settled.key, token: `${token}!`, by: user, force: false },
      seen: { fence: settled.fence, dispatchedAt: settled.lastDispatchedAt },
      decidedAt: settled.readAt,
      act: { type: 'abandon', reason },
      note: 'as in the ledger that it came from',
    });
  }
}

type ImportAs = 'succeeded' | 'failed' | 'in doubt' | 'given up' | 'link';

/** An open question is never lost; what may run again has nothing to say here. */
function decideImport(record: PortableRecord, now: number): ImportAs | { readonly because: string } {
  const { status, doubt, inDoubt, expiresAt, retention, movedTo } = record;
  if (movedTo !== undefined) return 'link';
  if (inDoubt || status === 'running' || status === 'unknown') return 'in doubt';
  if (status === 'released') return doubt ? 'in doubt' : { because: 'it did not land, and may run again' };
  const isKept = retention?.keep === true && (status === 'succeeded' || doubt);
  const isOver = record.expired || (expiresAt !== undefined && Date.parse(expiresAt) <= now);
  if (isOver && !isKept) return { because: 'its window is over' };
  if (status === 'failed') return doubt ? 'given up' : 'failed';
  return 'succeeded';
}

function isFree({ status, lapsed, inDoubt, expired }: StoredRecord): boolean {
  return expired || status === 'released' || (lapsed && !inDoubt);
}

function describeExisting({ status, inDoubt }: StoredRecord): string {
  return `there is a record of it already (${inDoubt ? 'in doubt' : status})`;
}

const instants = fieldsOfKind('instant');
const json = fieldsOfKind('json');
const texts = fieldsOfKind('text');

function toClaimRequest(record: PortableRecord, as: ImportAs, token: string, now: number): ClaimRequest {
  const { namespace, key, version, effect, keyed, owner, fence, providerKeyFence } = record;
  const { notAfter, inFlightUntil, firstDispatchedAt, lastDispatchedAt } = showFields(
    record,
    instants,
    parseInstant,
  );
  const { args, prepared, content } = showFields(record, json, toJson);
  const networkMs = Math.max(0, inFlightUntil === null ? unknownNetworkMs : inFlightUntil - now);
  return {
    ...{ namespace, key, olderKeys: [], token, fingerprint: record.fingerprint ?? null },
    ...{ for: 'execute', generation: null, crossing: true, leaseMs: 60_000, rerunWithinMs: null },
    ...{
      maxCrashes: Number.MAX_SAFE_INTEGER,
      inFlightForMs: networkMs,
      networkMs,
      version,
      effect,
      keyed,
      owner,
    },
    ...{ retention: toRetention(record, as, now), args, content, notAfter, share: false },
    ...showFields(record, texts, (text) => text ?? null),
    imported: { fence, providerKeyFence, firstDispatchedAt, lastDispatchedAt, prepared },
  };
}

function parseInstant(text: string | undefined): number | null {
  return text === undefined ? null : Date.parse(text);
}

/** What is settled ends when it would have ended there; what is open has all of its time before it. */
function toRetention({ retention, expiresAt }: PortableRecord, as: ImportAs, now: number): Retention {
  // A link without an expiry belongs to a record that is kept for ever.
  const keep = retention?.keep ?? (as === 'link' && expiresAt === undefined);
  if (as !== 'in doubt') {
    const endsAt = expiresAt === undefined ? farAway : Date.parse(expiresAt);
    const failureWindowMs = expiresAt === undefined ? failureMs : Math.max(0, endsAt - now);
    return { windowMs: 0, failureWindowMs, keep, periodEndsAt: endsAt };
  }
  const { windowMs = 30 * 24 * failureMs, failureWindowMs = failureMs, periodEndsAt } = retention ?? {};
  return {
    windowMs,
    failureWindowMs,
    keep,
    periodEndsAt: periodEndsAt === undefined ? null : Date.parse(periodEndsAt),
  };
}

function toStoredResult({ value, omitted, remoteRef }: PortableRecord, as: ImportAs): StoredResult | null {
  const text = toJson(value);
  if (as !== 'succeeded' && remoteRef === undefined) return null;
  const why = text === null ? (omitted ?? 'it was not in the ledger that it came from') : null;
  return { text, omitted: why, remoteRef: remoteRef ?? null };
}

function inDoubtError({ status }: PortableRecord) {
  const message = `It was ${status} in the ledger that it came from, and nobody knows whether it landed.`;
  return { code: 'IN_DOUBT', message, retriable: false };
}

function toJson(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

/** What the arrival changes, as it was. */
function importNote(record: PortableRecord): Readonly<Record<string, unknown>> {
  const { status, attempts, owner, fence, createdAt, settledAt, lastDispatchedAt, history } = record;
  const left = history.length - maxHistory;
  return {
    imported: { status, attempts, owner, fence, createdAt, settledAt, lastDispatchedAt },
    ...(history.length === 0 ? {} : { history: history.slice(-maxHistory) }),
    ...(left > 0 ? { historyLeftOut: left } : {}),
  };
}

function checkRecord(record: PortableRecord, namespace: string): void {
  const problem = findRecordProblem(record);
  if (problem !== undefined)
    throw new SemelError('INVALID_ARGS', `This is not an exported record: ${problem}.`, {
      path: 'record',
      next: 'Pass what `records.export` returned.',
    });
  if (record.namespace === namespace) return;
  throw new SemelError(
    'INVALID_ARGS',
    `The record ${record.key} belongs to the namespace ${record.namespace}, not ${namespace}: the namespace is part of its key.`,
    { path: 'record', next: `Use that namespace (\`namespace\`, \`--namespace\`).` },
  );
}
