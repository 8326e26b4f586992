// Finds the doubts of a ledger, also those that no program reports: of a holder that died, whose lease is over.

import { recordId } from '../../core/key/key.ts';
import { items } from '../../core/paging.ts';
import type { Ledger } from '../../ledger/index.ts';
import { isInternalNamespace, type RecordInfo, toRecordInfo } from '../../semel/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Decision, Doubt } from './event.ts';

export interface Looking {
  /** Undefined: all. */
  readonly namespace: string | undefined;
  /** Whether a person has to decide: a job that runs again by itself needs nobody. */
  readonly needsDecision: (record: RecordInfo) => boolean;
  /** Younger ones may be settled by the next call. */
  readonly olderMs: number;
}

/** A record may have a megabyte. */
const recordsAtOnce = 50;

/** Oldest first. */
export async function findDoubts(
  ledger: Ledger,
  { namespace: chosen, needsDecision, olderMs }: Looking,
): Promise<readonly Doubt[]> {
  const found: Doubt[] = [];
  const names =
    chosen === undefined
      ? (await ledger.namespaces()).filter((name) => !isInternalNamespace(name))
      : [chosen];
  for (const namespace of names)
    for (const status of ['unknown', 'running'] as const) {
      const list = (from: { readonly after?: string }) =>
        ledger.list({ namespace, status, inDoubt: true, limit: recordsAtOnce, ...from });
      for await (const record of items(list)) {
        const doubt = toDoubt(record, needsDecision);
        if (doubt !== undefined && (record.readAt || Date.now()) - sinceOf(record) >= olderMs)
          found.push(doubt);
      }
    }
  return found.sort((a, b) => (a.openedAt < b.openedAt ? -1 : a.openedAt > b.openedAt ? 1 : 0));
}

function toDoubt(record: StoredRecord, needsDecision: (record: RecordInfo) => boolean): Doubt | undefined {
  if (!record.inDoubt) return undefined;
  let info: RecordInfo;
  try {
    info = toRecordInfo(record);
  } catch {
    // A damaged record: `semel doctor` reports it.
    return undefined;
  }
  if (!needsDecision(info)) return undefined;
  const { namespace, contract, key, ref, attempts, error, remoteRef, providerKey, lastDispatchedAt } = info;
  const fence = openFence(record);
  return {
    id: `${recordId(namespace, key)}.${fence}`,
    ...{ namespace, tool: contract, key, ref, fence, attempts },
    openedAt: info.updatedAt.toISOString(),
    ...(lastDispatchedAt === undefined ? {} : { dispatchedAt: lastDispatchedAt.toISOString() }),
    error: error?.message ?? 'the process that ran it exited without reporting a result',
    ...(remoteRef === undefined ? {} : { remoteRef }),
    ...(providerKey === undefined ? {} : { providerKey }),
  };
}

/** A doubt whose call is tried again and again is not younger for that: it would never be old enough. */
function sinceOf(record: StoredRecord): number {
  const { fence, firstDispatchedAt, lastDispatchedAt, updatedAt } = record;
  return (openFence(record) === fence ? lastDispatchedAt : firstDispatchedAt) ?? updatedAt;
}

/** The attempt that is not accounted for. A later attempt, or a verifier that finds nothing out, leaves it as it is. */
function openFence({ doubtFence, fence }: StoredRecord): number {
  return doubtFence ?? fence;
}

/** Undefined while it is open: also while another attempt or a verifier is looking into it. */
export function findDecision(
  record: StoredRecord | undefined,
  { fence }: Pick<Doubt, 'fence'>,
): Omit<Decision, 'by'> | undefined {
  if (record === undefined) return { outcome: 'gone', decidedAt: new Date().toISOString() };
  const { status, doubtFence, settledAt, updatedAt } = record;
  const isOpen = status === 'unknown' || status === 'running';
  if (isOpen && openFence(record) === fence) return undefined;
  const decidedAt = new Date(settledAt ?? updatedAt).toISOString();
  if (status === 'succeeded') return { outcome: 'landed', decidedAt };
  if (status === 'failed') return { outcome: doubtFence === null ? 'refused' : 'abandoned', decidedAt };
  // Running for another reason: the doubt was cleared, and the call went on.
  if (doubtFence === null || isOpen) return { outcome: 'not landed', decidedAt };
  return { outcome: 'run again', decidedAt };
}
