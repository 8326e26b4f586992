// One intent under several forms of its key: during a rolling deployment some workers have the old contract and some the
// new one. They meet on one record because a claim first writes a link under every earlier form of its key. A worker that
// crashes between link and claim leaves a link to nothing, which blocks nobody.

import { chooseForm, findLoss } from './claim.ts';
import { emptyRow, type Retention, type Row } from './record.ts';
import type { Asking, ClaimRequest } from './requests.ts';
import { isExpired, isFree, type Time } from './state.ts';

/** The keys that a claim reads: its own, then newer ones found through links, then earlier ones. */
interface Forms {
  readonly keys: readonly string[];
  readonly newer: readonly string[];
}

export type FormStep =
  /** Read the rows under these newer keys first. */
  | { readonly kind: 'look'; readonly newer: readonly string[] }
  /** Link this earlier form to the record first. */
  | { readonly kind: 'link'; readonly form: number; readonly to: string }
  /** Claim this form; `row` is its record, if it has one. */
  | { readonly kind: 'claim'; readonly form: number; readonly row: Row | undefined };

/** A read has neither token nor retention, and writes no links. */
type FormAsking = Asking & Partial<Pick<ClaimRequest, 'token' | 'retention' | 'linksOnly'>>;

export function listForms({ key, olderKeys }: Asking, newer: readonly string[] = []): Forms {
  return { keys: [key, ...newer, ...olderKeys], newer };
}

export function isLink(row: Row | undefined): boolean {
  return row !== undefined && row.movedTo !== null;
}

/**
 * Follows links only from the claim's own key. An earlier form may cover several intents of the new one, so its link may
 * belong to another intent; there only a record decides.
 */
export function nextStep(
  { keys, newer }: Forms,
  rows: readonly (Row | undefined)[],
  asking: FormAsking,
  time: Time,
): FormStep {
  const links = rows[0]?.movedTo ?? [];
  if (links.some((key) => !keys.includes(key))) return { kind: 'look', newer: links };
  // The link to a newer key may be gone by now.
  const isUnlinked = (index: number) =>
    index > 0 && index <= newer.length && !links.includes(keys[index] as string);
  // An imported link replaces a free record.
  const isReplaceable = (row: Row | undefined) =>
    asking.linksOnly === true && row?.doubtFence === null && row.news === null && isFree(row, time);
  const records = rows.map((row, index) =>
    isLink(row) || isUnlinked(index) || isReplaceable(row) ? undefined : row,
  );
  // A token claims once: a late copy of a claim must meet the record of that claim.
  const own = asking.token === undefined ? -1 : records.findIndex((row) => row?.token === asking.token);
  const form = own >= 0 ? own : chooseForm(records, asking, time);
  const to = keys[form] as string;
  const step: FormStep = { kind: 'claim', form, row: records[form] };
  // Losing writes no links; and a repeated claim, or one for a known generation, follows a claim that wrote them.
  const isLinked = own >= 0 || asking.generation !== null || findLoss(step.row, asking, time) !== undefined;
  if (isLinked && asking.linksOnly !== true) return step;
  for (let index = 1 + newer.length; index < keys.length; index += 1) {
    const record = records[index];
    const isLive = record !== undefined && !isExpired(record, time);
    if (index === form || isLive || leadsTo(rows[index], to, asking, time)) continue;
    return { kind: 'link', form: index, to };
  }
  return step;
}

/** The link exists, and lasts as long as the record that is about to be claimed. */
function leadsTo(row: Row | undefined, key: string, { retention }: FormAsking, time: Time): boolean {
  if (row?.status !== 'released' || row.movedTo?.includes(key) !== true) return false;
  if (row.expiresAt === null || retention === undefined) return true;
  const neededUntil = linkExpiry(retention, time);
  return neededUntil !== null && row.expiresAt >= neededUntil - marginMs / 2;
}

/** A wrong clock could expire a link before its record, so without a trusted clock the link stays. */
function linkExpiry({ keep, windowMs, periodEndsAt }: Retention, time: Time): number | null {
  if (keep || !time.steady) return null;
  return Math.max(time.wall, periodEndsAt ?? 0) + windowMs + marginMs;
}

/** An earlier form may cover many new keys. The latest are kept: any one of them stops a worker with the old contract. */
const maxLinks = 32;
/** A link outlives its record, which may stay in doubt for a while. */
const marginMs = 30 * 24 * 3_600_000;

/**
 * A link looks like a free record, so that listing and pruning need not know about links. A new one starts as `running`,
 * as stores expect of an insert, but without a lease; the next step closes it.
 */
export function makeLink(
  row: Row | undefined,
  key: string,
  to: string,
  request: ClaimRequest,
  time: Time,
  floor: number,
): Row {
  const fence = Math.max(floor, row?.fence ?? 0) + 1;
  const { namespace, version, effect, owner } = request;
  const message = `Claimed under a newer form of its contract: ${to}`;
  return {
    ...emptyRow,
    ...{
      namespace,
      key,
      generation: fence,
      fence,
      providerKeyFence: fence,
      token: 'link',
      version,
      effect,
      owner,
    },
    status: row === undefined ? 'running' : 'released',
    error: { code: 'NOT_LANDED', message, retriable: true },
    ...{ createdAt: time.wall, updatedAt: time.wall, settledAt: time.wall },
    expiresAt: linkExpiry(request.retention, time),
    movedTo: [...(row?.movedTo ?? []).filter((each) => each !== to), to].slice(-maxLinks),
  };
}
