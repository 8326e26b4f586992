// One intent under several forms of its key: while a deployment rolls, some workers have the former contract and some the
// new one. They meet on one record because a claim first leaves a link under every earlier form of its key. The link is
// written before the claim, so a worker that dies in between leaves one that leads nowhere, which stops nobody.

import { chooseForm, findLoss } from './claim.ts';
import { emptyRow, type Retention, type Row } from './record.ts';
import type { Asking, ClaimRequest } from './requests.ts';
import { isExpired, isFree, type Time } from './state.ts';

/** The keys that a claim looks at: its own, newer ones that links led to, and earlier ones, in this order. */
interface Forms {
  readonly keys: readonly string[];
  readonly newer: readonly string[];
}

export type FormStep =
  /** The rows under these newer keys have to be seen first. */
  | { readonly kind: 'look'; readonly newer: readonly string[] }
  /** This earlier form does not lead to the record yet. */
  | { readonly kind: 'link'; readonly form: number; readonly to: string }
  /** The claim acts on this form; `row` is its record, if it has one. */
  | { readonly kind: 'claim'; readonly form: number; readonly row: Row | undefined };

/** A look has neither token nor retention, and writes no links. */
type FormAsking = Asking & Partial<Pick<ClaimRequest, 'token' | 'retention' | 'linksOnly'>>;

export function listForms({ key, olderKeys }: Asking, newer: readonly string[] = []): Forms {
  return { keys: [key, ...newer, ...olderKeys], newer };
}

export function isLink(row: Row | undefined): boolean {
  return row !== undefined && row.movedTo !== null;
}

/**
 * Links are followed from the claim's own key only. An earlier form may stand for several intents of the new one: there a
 * link may tell of another intent, and only a record decides.
 */
export function nextStep(
  { keys, newer }: Forms,
  rows: readonly (Row | undefined)[],
  asking: FormAsking,
  time: Time,
): FormStep {
  const links = rows[0]?.movedTo ?? [];
  if (links.some((key) => !keys.includes(key))) return { kind: 'look', newer: links };
  // The link that led to a newer key may be gone by now.
  const isCut = (index: number) =>
    index > 0 && index <= newer.length && !links.includes(keys[index] as string);
  // What comes from another ledger takes a free record's place.
  const givesWay = (row: Row | undefined) =>
    asking.linksOnly === true && row?.doubtFence === null && row.news === null && isFree(row, time);
  const records = rows.map((row, index) => (isLink(row) || isCut(index) || givesWay(row) ? undefined : row));
  // A token claims once: a copy of a claim that comes late meets the record that the claim was about.
  const own = asking.token === undefined ? -1 : records.findIndex((row) => row?.token === asking.token);
  const form = own >= 0 ? own : chooseForm(records, time);
  const to = keys[form] as string;
  const step: FormStep = { kind: 'claim', form, row: records[form] };
  // Losing changes nothing. A claim that is asked again, or for one generation, comes after one that has left its links.
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

/** The link is there, and will be for as long as the record that is about to be claimed. */
function leadsTo(row: Row | undefined, key: string, { retention }: FormAsking, time: Time): boolean {
  if (row?.status !== 'released' || row.movedTo?.includes(key) !== true) return false;
  if (row.expiresAt === null || retention === undefined) return true;
  const neededUntil = linkExpiry(retention, time);
  return neededUntil !== null && row.expiresAt >= neededUntil - longerMs / 2;
}

/** By a wrong clock a link might go before the record that it leads to: it then stays. */
function linkExpiry({ keep, windowMs, periodEndsAt }: Retention, time: Time): number | null {
  if (keep || !time.steady) return null;
  return Math.max(time.wall, periodEndsAt ?? 0) + windowMs + longerMs;
}

/** An earlier form may stand for many new keys. Those claimed last are kept: any one that stands stops the old worker. */
const mostLinks = 32;
/** A link outlives the record that it leads to, which may be in doubt for a while. */
const longerMs = 30 * 24 * 3_600_000;

/**
 * It looks like a free record, so that code that lists or prunes records needs to know nothing of links. Rows are born
 * running, as stores expect, and without a lease: the next step closes it.
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
    movedTo: [...(row?.movedTo ?? []).filter((each) => each !== to), to].slice(-mostLinks),
  };
}
