// Converts rows to columns and back, for every store that writes rows. The usual record stays small: usual values are not
// stored, instants are relative to the creation, and everything unusual, or needed only while a record is open, is one
// JSON text.

import { effects, type Status } from '../core/contract/words.ts';
import type { News, RecordError, Row } from './store.ts';

/** The order is stored: add at the end only. */
const statuses: readonly Status[] = ['running', 'succeeded', 'failed', 'released', 'unknown'];

export function statusCode(status: Status): number {
  return statuses.indexOf(status);
}

/** An attempt is running or not accounted for. Pruning never removes it. */
export function isOpen(status: Status): boolean {
  return status === 'running' || status === 'unknown';
}

// The two lowest bits of `flags` are the effect class.
const keyed = 4;
export const dispatchedFlag = 8;
/** Dispatched first and last when it was created: the claim was the dispatch. */
const crossedAtClaim = 16;
const retained = 32;
export const keptFlag = 64;

/** The values of a row besides its namespace and key, in this order. */
export type Columns = [
  status: number,
  flags: number,
  fence: number,
  /** Null if the token is not of the usual form: then `more` has it. */
  token: string | null,
  version: string,
  owner: string,
  created: number,
  settled: number | null,
  expires: number | null,
  args: string | null,
  content: string | null,
  result: string | null,
  asker: string | null,
  more: string | null,
];

/** What most settled records do not have. Instants are milliseconds after `created`. */
interface More {
  token?: string;
  generation?: number;
  providerKeyFence?: number;
  attempts?: number;
  crashes?: number;
  fingerprint?: string;
  lease?: readonly [boot: string, until: number];
  window?: number;
  failureWindow?: number;
  periodEnds?: number;
  prepared?: string;
  omitted?: string | null;
  remoteRef?: string;
  notes?: number;
  error?: RecordError;
  news?: News;
  updated?: number;
  firstDispatched?: number;
  lastDispatched?: number;
  quiet?: number;
  tail?: number;
  doubtFence?: number;
  notAfter?: number;
  movedTo?: readonly string[];
}

const shortToken = /^[0-9a-f]{16}$/;

export function toColumns(row: Row): Columns {
  const { createdAt } = row;
  const isShort = shortToken.test(row.token);
  return [
    statusCode(row.status),
    packFlags(row),
    row.fence,
    isShort ? row.token : null,
    row.version,
    row.owner,
    createdAt,
    since(createdAt, row.settledAt),
    since(createdAt, row.expiresAt),
    row.args,
    row.content,
    row.result?.text ?? null,
    packAsker(row),
    packMore(row, isShort),
  ];
}

/** A faster `toColumns` for a row whose attempt has ended or continued since `was`. Undefined: anything else differs. */
export function updateColumns(was: Row, columns: Columns, row: Row): Columns | undefined {
  const isSame =
    row.token === was.token &&
    row.fence === was.fence &&
    row.createdAt === was.createdAt &&
    row.version === was.version &&
    row.owner === was.owner &&
    row.args === was.args &&
    row.content === was.content &&
    row.conversation === was.conversation &&
    row.turn === was.turn &&
    row.toolCallId === was.toolCallId &&
    row.run === was.run &&
    row.again === was.again &&
    row.caller === was.caller;
  if (!isSame) return undefined;
  const { createdAt } = row;
  const [, , fence, token, version, owner, created, , , args, content, , asker] = columns;
  return [
    statusCode(row.status),
    packFlags(row),
    fence,
    token,
    version,
    owner,
    created,
    since(createdAt, row.settledAt),
    since(createdAt, row.expiresAt),
    args,
    content,
    row.result?.text ?? null,
    asker,
    packMore(row, token !== null),
  ];
}

function packFlags(row: Row): number {
  const { retention } = row;
  return (
    effects.indexOf(row.effect) |
    (row.keyed ? keyed : 0) |
    (row.dispatched ? dispatchedFlag : 0) |
    (wasCrossedAtClaim(row) ? crossedAtClaim : 0) |
    (retention === null ? 0 : retained) |
    (retention?.keep ? keptFlag : 0)
  );
}

function wasCrossedAtClaim({ createdAt, firstDispatchedAt, lastDispatchedAt }: Row): boolean {
  return firstDispatchedAt === createdAt && lastDispatchedAt === createdAt;
}

function packMore(row: Row, isShort: boolean): string | null {
  const { createdAt, retention, result } = row;
  const more: More = {};
  if (!isShort) more.token = row.token;
  if (row.generation !== row.fence) more.generation = row.generation;
  if (row.providerKeyFence !== row.generation) more.providerKeyFence = row.providerKeyFence;
  if (row.attempts !== 1) more.attempts = row.attempts;
  if (row.crashes !== 0) more.crashes = row.crashes;
  if (row.fingerprint !== null) more.fingerprint = row.fingerprint;
  if (row.leaseBoot !== null && row.leaseUntil !== null) more.lease = [row.leaseBoot, finite(row.leaseUntil)];
  if (retention !== null) {
    if (retention.windowMs !== 0) more.window = finite(retention.windowMs);
    if (retention.failureWindowMs !== 0) more.failureWindow = finite(retention.failureWindowMs);
    if (retention.periodEndsAt !== null) more.periodEnds = finite(retention.periodEndsAt) - createdAt;
  }
  if (row.prepared !== null) more.prepared = row.prepared;
  if (result !== null && (result.omitted !== null || result.text === null)) more.omitted = result.omitted;
  if (result !== null && result.remoteRef !== null) more.remoteRef = result.remoteRef;
  if (row.notes !== 0) more.notes = row.notes;
  if (row.error !== null) more.error = row.error;
  if (row.news !== null) more.news = row.news;
  if (row.updatedAt !== (row.settledAt ?? createdAt)) more.updated = row.updatedAt - createdAt;
  if (!wasCrossedAtClaim(row)) {
    if (row.firstDispatchedAt !== null) more.firstDispatched = row.firstDispatchedAt - createdAt;
    if (row.lastDispatchedAt !== null) more.lastDispatched = row.lastDispatchedAt - createdAt;
  }
  if (row.inFlightUntil !== null) more.quiet = finite(row.inFlightUntil) - createdAt;
  if (row.networkMs !== 0) more.tail = finite(row.networkMs);
  if (row.doubtFence !== null) more.doubtFence = row.doubtFence;
  if (row.notAfter !== null) more.notAfter = finite(row.notAfter) - createdAt;
  if (row.movedTo !== null) more.movedTo = row.movedTo;
  const text = JSON.stringify(more);
  return text === '{}' ? null : text;
}

export function fromColumns(namespace: string, key: string, columns: Columns): Row {
  const [
    status,
    flags,
    fence,
    token,
    version,
    owner,
    created,
    settled,
    expires,
    args,
    content,
    text,
    asker,
    json,
  ] = columns;
  const more: More = json === null ? usual : JSON.parse(json);
  const [conversation = null, turn = null, toolCallId = null, run = null, again = null, caller = null] =
    asker === null ? nobody : (JSON.parse(asker) as (string | null)[]);
  const settledAt = settled === null ? null : created + settled;
  const crossedAt = (flags & crossedAtClaim) === 0 ? null : created;
  const hasResult = text !== null || more.omitted !== undefined;
  return {
    namespace,
    key,
    generation: more.generation ?? fence,
    fence,
    providerKeyFence: more.providerKeyFence ?? more.generation ?? fence,
    token: more.token ?? (token as string),
    status: statuses[status] as Status,
    doubtFence: more.doubtFence ?? null,
    dispatched: (flags & dispatchedFlag) !== 0,
    attempts: more.attempts ?? 1,
    crashes: more.crashes ?? 0,
    version,
    effect: effects[flags & 3] as Row['effect'],
    keyed: (flags & keyed) !== 0,
    fingerprint: more.fingerprint ?? null,
    owner,
    leaseBoot: more.lease?.[0] ?? null,
    leaseUntil: more.lease?.[1] ?? null,
    retention:
      (flags & retained) === 0
        ? null
        : {
            windowMs: more.window ?? 0,
            failureWindowMs: more.failureWindow ?? 0,
            keep: (flags & keptFlag) !== 0,
            periodEndsAt: from(created, more.periodEnds),
          },
    args,
    prepared: more.prepared ?? null,
    content,
    result: hasResult ? { text, omitted: more.omitted ?? null, remoteRef: more.remoteRef ?? null } : null,
    notes: more.notes ?? 0,
    error: more.error ?? null,
    news: more.news ?? null,
    createdAt: created,
    updatedAt: from(created, more.updated) ?? settledAt ?? created,
    settledAt,
    expiresAt: expires === null ? null : created + expires,
    firstDispatchedAt: crossedAt ?? from(created, more.firstDispatched),
    lastDispatchedAt: crossedAt ?? from(created, more.lastDispatched),
    inFlightUntil: from(created, more.quiet),
    networkMs: more.tail ?? 0,
    notAfter: from(created, more.notAfter),
    conversation,
    turn,
    toolCallId,
    run,
    again,
    caller,
    movedTo: more.movedTo ?? null,
  };
}

const usual: More = {};
const nobody: (string | null)[] = [];

function packAsker(row: Row): string | null {
  const asker = [row.conversation, row.turn, row.toolCallId, row.run, row.again, row.caller];
  while (asker.length > 0 && asker.at(-1) === null) asker.pop();
  return asker.length === 0 ? null : JSON.stringify(asker);
}

function since(created: number, instant: number | null): number | null {
  return instant === null ? null : Math.trunc(finite(instant) - created);
}

function from(created: number, delta: number | undefined): number | null {
  return delta === undefined ? null : created + delta;
}

/** JSON and databases have no Infinity. */
function finite(ms: number): number {
  return Math.min(ms, Number.MAX_SAFE_INTEGER);
}
