// Whether the ledger is still the one that this process knows, and no older than it was. Every write says what it knows;
// whoever finds it otherwise writes nothing.

import type { Random } from '../../core/clock.ts';
import type { Reply } from './client.ts';
import { clusterBuckets, type Names, namesOf } from './names.ts';
import { accept, begin, layoutVersion, type Script } from './scripts.ts';

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

interface BucketMeta {
  readonly id: string | null;
  readonly seq: number;
  readonly lost: string | null;
  readonly moved: string | null;
  readonly writer: number;
  readonly buckets: number;
  readonly accepted: string | null;
}

interface LedgerOptions {
  readonly prefix: string;
  readonly isCluster: boolean;
  readonly random: Random;
}

/** What is known from before, if anything, stands: another ledger is taken up only where a person has accepted it. */
export async function identify(run: Run, options: LedgerOptions, before?: Incarnation): Promise<Incarnation> {
  const { names, metas } = await metasOf(run, options, before === undefined);
  const known = metas.map((meta, bucket) => {
    const was = before?.of(bucket);
    const isKnown = was === undefined || was.id === meta.id || meta.accepted !== null;
    if (meta.lost !== null || meta.id === null || !isKnown) throw new Error('SEMELFORGOT');
    if (was?.id === meta.id && meta.seq < was.seq) throw new Error('SEMELFORGOT');
    if (meta.moved !== null) throw new Error(`SEMELMOVED ${meta.moved}`);
    if (meta.writer > layoutVersion) throw new Error('SEMELOLD');
    return { id: meta.id, seq: meta.seq };
  });
  return {
    names,
    of: (bucket) => known[bucket] as Known,
    saw(bucket, seq) {
      const one = known[bucket] as Known;
      if (seq > one.seq) one.seq = seq;
    },
  };
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
  const first = await describe(run, namesOf(prefix, 1), 0, id, false, true);
  const buckets = first.buckets || (isCluster ? clusterBuckets : 1);
  const names = namesOf(prefix, buckets);
  const isNew = first.id === null && first.lost === null && mayBegin;
  const rest = await Promise.all(
    Array.from({ length: buckets - 1 }, (_, n) => describe(run, names, n + 1, id, isNew, false)),
  );
  const isUsed = rest.some(({ seq, lost }) => seq > 0 || lost !== null);
  const head =
    first.id === null && first.lost === null
      ? await describe(run, names, 0, id, isNew && !isUsed, false)
      : first;
  return { names, metas: [head, ...rest] };
}

async function describe(
  run: Run,
  names: Names,
  bucket: number,
  id: string,
  mayBegin: boolean,
  onlyLook: boolean,
): Promise<BucketMeta> {
  const keys = [names.slots(bucket), names.meta(bucket), names.namespaces(bucket)];
  const word = onlyLook ? 'look' : mayBegin ? 'new' : 'old';
  const args = [id, String(names.buckets), String(layoutVersion), word];
  const reply = (await run(begin, keys, args)) as readonly (string | null)[];
  const [found = null, seq, lost = null, moved = null, writer, count, accepted = null] = reply;
  return {
    id: found,
    seq: Number(seq ?? 0),
    lost,
    moved,
    writer: Number(writer ?? 0),
    buckets: Number(count ?? 0),
    accepted,
  };
}

/** As it was laid out, or would be if it were new. */
export async function bucketsOf(run: Run, prefix: string, isCluster: boolean): Promise<number> {
  const { buckets } = await describe(run, namesOf(prefix, 1), 0, '', false, true);
  return buckets || (isCluster ? clusterBuckets : 1);
}

/** Opens the ledger again, as another: those who knew it take it up. */
export async function acceptAnew(run: Run, names: Names, random: Random): Promise<void> {
  const args = [random.token(), String(names.buckets), String(layoutVersion)];
  // The first last: until then nobody can open it.
  for (let bucket = names.buckets - 1; bucket >= 0; bucket -= 1)
    await run(accept, [names.slots(bucket), names.meta(bucket)], args);
}
