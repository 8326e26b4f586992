// What the ledger says about itself, per bucket: its id, its count of writes, whether it is closed. Every write passes what
// this process knows of it, and a script that finds another id or a lower count refuses to write.

import type { Random } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import type { Standing } from '../../store/move/ledger-state.ts';
import type { Reply } from './client.ts';
import {
  accept,
  begin,
  descriptionFields,
  layoutVersion,
  mostCount,
  type Script,
  stand,
} from './exchange/scripts.ts';
import { clusterBuckets, createNames, type Names } from './names.ts';

export type Run = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<Reply>;

/** What this process has seen of a bucket. */
export interface KnownBucket {
  id: string;
  seq: number;
}

export interface KnownLedger {
  readonly names: Names;
  of(bucket: number): KnownBucket;
  markSeen(bucket: number, seq: number): void;
}

export interface BucketMeta {
  readonly id: string | null;
  readonly seq: number;
  readonly lost: string | null;
  readonly writer: number;
  readonly buckets: number;
  readonly floor: number;
  /** Why it is closed to its users: `MOVED` and where to, or `FILLING`; null if it is open. */
  readonly closed: string | null;
  /** The id of the ledger that it is or was filled from. */
  readonly from: string | null;
  /** Counts the changes of `closed` and `from`. */
  readonly turn: number;
  /** When a person last accepted a loss; null if never. */
  readonly accepted: string | null;
  readonly acceptedBy: string | null;
  readonly acceptedWhy: string | null;
}

export interface LedgerOptions {
  readonly prefix: string;
  readonly isCluster: boolean;
  readonly random: Random;
}

export interface InspectedLedger {
  readonly metas: readonly BucketMeta[];
  readonly known: KnownLedger;
}

/** Refuses a ledger other than the one known before, unless a person accepted a loss. */
export async function identify(run: Run, options: LedgerOptions, before?: KnownLedger): Promise<KnownLedger> {
  return (await inspect(run, options, before, 'user')).known;
}

/** A mover may use the ledger even while it is closed to its users. */
export async function inspect(
  run: Run,
  options: LedgerOptions,
  before: KnownLedger | undefined,
  who: 'user' | 'mover',
): Promise<InspectedLedger> {
  const found = checkMetas(await readMetas(run, options, before === undefined), before);
  const closed = found.metas.find((meta) => meta.closed !== null)?.closed;
  if (who === 'user' && closed) throw new Error(`SEMEL${closed}`);
  if (found.metas.some(({ writer }) => writer > layoutVersion)) throw new Error('SEMELOLD');
  return found;
}

/** Undefined if there is no ledger; does not create one. */
export async function inspectIfAny(
  run: Run,
  options: LedgerOptions,
  before: KnownLedger | undefined,
): Promise<InspectedLedger | undefined> {
  const { id, lost } = await readMeta(run, createNames(options.prefix, 1), 0, '', 'look');
  const isNone = before === undefined && id === null && lost === null;
  return isNone ? undefined : inspect(run, options, before, 'mover');
}

function checkMetas(
  { names, metas }: { names: Names; metas: readonly BucketMeta[] },
  before: KnownLedger | undefined,
): InspectedLedger {
  const seen = metas.map((meta, bucket) => {
    const was = before?.of(bucket);
    const isKnown = was === undefined || was.id === meta.id || meta.accepted !== null;
    const isWhole = isCount(meta.seq) && isCount(meta.floor);
    if (meta.lost !== null || meta.id === null || !isKnown || !isWhole) throw new Error('SEMELFORGOT');
    if (was?.id === meta.id && meta.seq < was.seq) throw new Error('SEMELFORGOT');
    return { id: meta.id, seq: meta.seq };
  });
  const known: KnownLedger = {
    names,
    of: (bucket) => seen[bucket] as KnownBucket,
    markSeen(bucket, seq) {
      const one = seen[bucket] as KnownBucket;
      if (seq > one.seq) one.seq = seq;
    },
  };
  return { metas, known };
}

/**
 * Creates the first bucket's `meta` last, so that its existence implies the others. Finishes a ledger that was only partly
 * created; does not mistake one that lost a bucket, or has records but no `meta`, for a new one.
 */
async function readMetas(
  run: Run,
  { prefix, isCluster, random }: LedgerOptions,
  mayBegin: boolean,
): Promise<{ names: Names; metas: readonly BucketMeta[] }> {
  const id = random.token();
  const first = await readMeta(run, createNames(prefix, 1), 0, id, 'look');
  const buckets = first.buckets || (isCluster ? clusterBuckets : 1);
  // No other count is valid. A count that was tampered with could be huge.
  if (buckets !== 1 && buckets !== clusterBuckets) throw new Error('SEMELFORGOT');
  const names = createNames(prefix, buckets);
  const isNew = first.id === null && first.lost === null && mayBegin;
  const rest = await Promise.all(
    Array.from({ length: buckets - 1 }, (_, n) => readMeta(run, names, n + 1, id, isNew ? 'new' : 'old')),
  );
  const isUsed = rest.some(({ seq, lost }) => seq > 0 || lost !== null);
  const head =
    first.id === null && first.lost === null
      ? await readMeta(run, names, 0, id, isNew && !isUsed ? 'new' : 'old')
      : first;
  return { names, metas: [head, ...rest] };
}

async function readMeta(
  run: Run,
  names: Names,
  bucket: number,
  id: string,
  how: 'new' | 'old' | 'look',
): Promise<BucketMeta> {
  const keys = [names.slots(bucket), names.meta(bucket), names.namespaces(bucket)];
  const args = [id, String(names.buckets), String(layoutVersion), how];
  const reply = (await run(begin, keys, args)) as readonly (string | null)[];
  const arrived = reply[descriptionFields.length];
  if (arrived !== names.meta(bucket)) throw rewrittenKeysError(names.meta(bucket), String(arrived));
  const found = Object.fromEntries(
    descriptionFields.map((field, index) => [field, reply[index] ?? null]),
  ) as Record<(typeof descriptionFields)[number], string | null>;
  return {
    ...found,
    seq: Number(found.seq),
    writer: Number(found.writer),
    buckets: Number(found.buckets),
    floor: Number(found.floor),
    turn: Number(found.turn),
  };
}

export function isCount(value: number): boolean {
  return value >= 0 && value < mostCount;
}

/** The ledger's number of buckets, or that of a new one. */
export async function readBucketCount(run: Run, prefix: string, isCluster: boolean): Promise<number> {
  const { buckets } = await readMeta(run, createNames(prefix, 1), 0, '', 'look');
  return buckets === 1 || buckets === clusterBuckets ? buckets : isCluster ? clusterBuckets : 1;
}

/** Reopens the ledger under a new id, which the programs that knew it then adopt. */
export async function reopenAsNew(
  run: Run,
  names: Names,
  random: Random,
  { by, note }: { readonly by: string; readonly note: string | null },
): Promise<void> {
  const args = [random.token(), String(names.buckets), String(layoutVersion), by, note ?? ''];
  // The first bucket last: until then nobody can open the ledger.
  for (let bucket = names.buckets - 1; bucket >= 0; bucket -= 1)
    await run(accept, [names.slots(bucket), names.meta(bucket)], args);
}

/** The client changes keys in commands but not in replies, so records could not be listed or removed. */
function rewrittenKeysError(sent: string, arrived: string): SemelError {
  const added = arrived.endsWith(sent) ? arrived.slice(0, -sent.length) : undefined;
  return new SemelError(
    'STORE_UNSAFE',
    added === undefined
      ? 'The Redis client changes the keys that it sends.'
      : `The Redis client has a key prefix of its own, ${JSON.stringify(added)}: doubts and records could not be listed.`,
    {
      next:
        added === undefined
          ? 'Nothing was run. Pass a client that sends keys as they are.'
          : `Nothing was run. Pass a client without \`keyPrefix\`, and put it into the store: \`redisStore({ client, prefix: '${added}semel' })\`.`,
    },
  );
}

const filling = 'FILLING';
const moved = 'MOVED ';

export function parseStanding({ id, closed, from }: BucketMeta): Standing {
  return {
    incarnation: id ?? '',
    movedTo: closed?.startsWith(moved) ? closed.slice(moved.length) : null,
    cameFrom: from,
    filling: closed === filling,
  };
}

/** False if another process changed the state, or wrote to a ledger that must stay empty. */
export async function changeStanding(
  run: Run,
  { names, of, markSeen }: KnownLedger,
  meta: BucketMeta,
  becomes: Standing,
): Promise<boolean> {
  const was = parseStanding(meta);
  const { movedTo, cameFrom } = becomes;
  if (was.movedTo === movedTo && was.cameFrom === cameFrom && was.filling === becomes.filling) return true;
  const { id, seq } = of(0);
  const closed = movedTo === null ? (becomes.filling ? filling : '') : moved + movedTo;
  const mustBeUnwritten = becomes.filling && !was.filling;
  const [isDone, latest] = (await run(
    stand,
    [names.slots(0), names.meta(0)],
    [
      id,
      String(seq),
      String(layoutVersion),
      String(meta.turn),
      closed,
      cameFrom ?? '',
      mustBeUnwritten ? String(meta.seq) : '',
    ],
  )) as [number, number | string];
  markSeen(0, Number(latest));
  return isDone === 1;
}
