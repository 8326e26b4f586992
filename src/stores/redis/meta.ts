// Whether the ledger is still the one that this process knows, and no older than it was. Every write says what it knows;
// whoever finds it otherwise writes nothing.

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
import { clusterBuckets, type Names, namesOf } from './names.ts';

export type Run = (script: Script, keys: readonly string[], args: readonly string[]) => Promise<Reply>;

/** What this process has seen of a bucket. */
export interface Known {
  id: string;
  seq: number;
}

export interface Incarnation {
  readonly names: Names;
  of(bucket: number): Known;
  saw(bucket: number, seq: number): void;
}

export interface BucketMeta {
  readonly id: string | null;
  readonly seq: number;
  readonly lost: string | null;
  readonly writer: number;
  readonly buckets: number;
  readonly floor: number;
  /** Why it refuses its users: `MOVED` and where to, or `FILLING`; null: it does not. */
  readonly closed: string | null;
  /** The incarnation of the ledger that it is or was filled from. */
  readonly from: string | null;
  /** Counts the changes of the standing. */
  readonly turn: number;
  /** When a person has accepted a loss last; null: never. */
  readonly accepted: string | null;
  readonly acceptedBy: string | null;
  readonly acceptedWhy: string | null;
}

export interface LedgerOptions {
  readonly prefix: string;
  readonly isCluster: boolean;
  readonly random: Random;
}

/** A ledger as it was found. */
export interface Inspected {
  readonly metas: readonly BucketMeta[];
  readonly known: Incarnation;
}

/** What is known from before, if anything, stands: another ledger is taken up only where a person has accepted it. */
export async function identify(run: Run, options: LedgerOptions, before?: Incarnation): Promise<Incarnation> {
  return (await inspect(run, options, before, 'users')).known;
}

/** Whoever moves the ledger may come also while it is closed to its users. */
export async function inspect(
  run: Run,
  options: LedgerOptions,
  before: Incarnation | undefined,
  who: 'users' | 'whoever',
): Promise<Inspected> {
  const found = checked(await metasOf(run, options, before === undefined), before);
  const closed = found.metas.find((meta) => meta.closed !== null)?.closed;
  if (who === 'users' && closed) throw new Error(`SEMEL${closed}`);
  if (found.metas.some(({ writer }) => writer > layoutVersion)) throw new Error('SEMELOLD');
  return found;
}

/** Undefined: there is none, and none is begun. */
export async function inspectIfAny(
  run: Run,
  options: LedgerOptions,
  before: Incarnation | undefined,
): Promise<Inspected | undefined> {
  const { id, lost } = await describe(run, namesOf(options.prefix, 1), 0, '', 'look');
  const isNone = before === undefined && id === null && lost === null;
  return isNone ? undefined : inspect(run, options, before, 'whoever');
}

function checked(
  { names, metas }: { names: Names; metas: readonly BucketMeta[] },
  before: Incarnation | undefined,
): Inspected {
  const seen = metas.map((meta, bucket) => {
    const was = before?.of(bucket);
    const isKnown = was === undefined || was.id === meta.id || meta.accepted !== null;
    const isWhole = isCount(meta.seq) && isCount(meta.floor);
    if (meta.lost !== null || meta.id === null || !isKnown || !isWhole) throw new Error('SEMELFORGOT');
    if (was?.id === meta.id && meta.seq < was.seq) throw new Error('SEMELFORGOT');
    return { id: meta.id, seq: meta.seq };
  });
  const known: Incarnation = {
    names,
    of: (bucket) => seen[bucket] as Known,
    saw(bucket, seq) {
      const one = seen[bucket] as Known;
      if (seq > one.seq) one.seq = seq;
    },
  };
  return { metas, known };
}

/**
 * The first bucket is described last, so that where it is, the others were. A ledger that was only begun is finished;
 * one that lost a bucket, or that has records and no description, is not taken for a new one.
 */
async function metasOf(
  run: Run,
  { prefix, isCluster, random }: LedgerOptions,
  mayBegin: boolean,
): Promise<{ names: Names; metas: readonly BucketMeta[] }> {
  const id = random.token();
  const first = await describe(run, namesOf(prefix, 1), 0, id, 'look');
  const buckets = first.buckets || (isCluster ? clusterBuckets : 1);
  // No ledger has another count. One that was changed could be too many to be described.
  if (buckets !== 1 && buckets !== clusterBuckets) throw new Error('SEMELFORGOT');
  const names = namesOf(prefix, buckets);
  const isNew = first.id === null && first.lost === null && mayBegin;
  const rest = await Promise.all(
    Array.from({ length: buckets - 1 }, (_, n) => describe(run, names, n + 1, id, isNew ? 'new' : 'old')),
  );
  const isUsed = rest.some(({ seq, lost }) => seq > 0 || lost !== null);
  const head =
    first.id === null && first.lost === null
      ? await describe(run, names, 0, id, isNew && !isUsed ? 'new' : 'old')
      : first;
  return { names, metas: [head, ...rest] };
}

async function describe(
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
  if (arrived !== names.meta(bucket)) throw rewritesKeys(names.meta(bucket), String(arrived));
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

/** As it was laid out, or would be if it were new. */
export async function bucketsOf(run: Run, prefix: string, isCluster: boolean): Promise<number> {
  const { buckets } = await describe(run, namesOf(prefix, 1), 0, '', 'look');
  return buckets === 1 || buckets === clusterBuckets ? buckets : isCluster ? clusterBuckets : 1;
}

/** Opens the ledger again, as another: those who knew it take it up. */
export async function acceptAnew(
  run: Run,
  names: Names,
  random: Random,
  { by, note }: { readonly by: string; readonly note: string | null },
): Promise<void> {
  const args = [random.token(), String(names.buckets), String(layoutVersion), by, note ?? ''];
  // The first last: until then nobody can open it.
  for (let bucket = names.buckets - 1; bucket >= 0; bucket -= 1)
    await run(accept, [names.slots(bucket), names.meta(bucket)], args);
}

/** What it changes on the way there it does not change back on the way here: records could not be listed or removed. */
function rewritesKeys(sent: string, arrived: string): SemelError {
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

export function standingOf({ id, closed, from }: BucketMeta): Standing {
  return {
    incarnation: id ?? '',
    movedTo: closed?.startsWith(moved) ? closed.slice(moved.length) : null,
    cameFrom: from,
    filling: closed === filling,
  };
}

/** False: somebody else changed it, or wrote where nobody may have written since it was inspected. */
export async function change(
  run: Run,
  { names, of, saw }: Incarnation,
  meta: BucketMeta,
  becomes: Standing,
): Promise<boolean> {
  const was = standingOf(meta);
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
  saw(0, Number(latest));
  return isDone === 1;
}
