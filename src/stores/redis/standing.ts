// Whether the ledger may be used, which every bucket knows for itself: no script of one can ask another. A change is
// decided at the first bucket and then told to the others, with its number, the turn; none takes a turn that is not later
// than its own, and the latest is what counts. So of two changes at once one is refused, and what was told too late has no
// effect. One that died on the way is seen, and ended by the same command:
// - A seal: some buckets still take writes. The last pass begins when none does any more, and finds them.
// - The closing of a ledger that is to be filled: the same, and nothing is filled in before it has ended. Whoever made a
//   record meanwhile is not closed out: the copy is refused and the ledger opened again.
// - A seal that is taken back, a ledger that is opened: some buckets still refuse. Whoever opens the ledger next tells them.

import type { Standing } from '../../store/standing.ts';
import type { BucketMeta, Inspected, Run } from './incarnation.ts';
import { layoutVersion, stand } from './scripts.ts';

const filling = 'FILLING';
const moved = 'MOVED ';

export function isFillingWord(closed: string | null): boolean {
  return closed === filling;
}

/** What was decided last. */
export function latestOf(metas: readonly BucketMeta[]): BucketMeta {
  return metas.reduce((latest, meta) => (meta.turn > latest.turn ? meta : latest));
}

export function standingOf(metas: readonly BucketMeta[]): Standing {
  const { closed, from } = latestOf(metas);
  return {
    // The first bucket is described last and by one program only; the others may be by several.
    incarnation: metas[0]?.id ?? '',
    movedTo: closed?.startsWith(moved) ? closed.slice(moved.length) : null,
    cameFrom: from,
    filling: isFillingWord(closed),
  };
}

/** False: somebody else changed it, or wrote where nobody may have written since it was inspected. */
export async function change(run: Run, found: Inspected, becomes: Standing): Promise<boolean> {
  const was = standingOf(found.metas);
  const isOther =
    was.movedTo !== becomes.movedTo || was.cameFrom !== becomes.cameFrom || was.filling !== becomes.filling;
  const turn = latestOf(found.metas).turn + (isOther ? 1 : 0);
  if (isOther && (await tell(run, found, 0, turn, becomes)) !== 1) return false;
  const answers = await Promise.all(found.metas.map((_, bucket) => tell(run, found, bucket, turn, becomes)));
  return answers.every((answer) => answer >= 0);
}

/** Where a ledger that is open for all has buckets that have not heard of it. Answers whether there were any. */
export async function catchUp(run: Run, found: Inspected): Promise<boolean> {
  const { turn, closed } = latestOf(found.metas);
  if (closed !== null || found.metas.every((meta) => meta.turn === turn)) return false;
  await change(run, found, standingOf(found.metas));
  return true;
}

async function tell(
  run: Run,
  { metas, known: { names, of, saw } }: Inspected,
  bucket: number,
  turn: number,
  { movedTo, cameFrom, filling: isFilling }: Standing,
): Promise<number> {
  const { id, seq } = of(bucket);
  const meta = metas[bucket] as BucketMeta;
  const closed = movedTo === null ? (isFilling ? filling : '') : moved + movedTo;
  const mustBeUnwritten = isFilling && !isFillingWord(meta.closed);
  const [answer, latest] = (await run(
    stand,
    [names.slots(bucket), names.meta(bucket)],
    [
      id,
      String(seq),
      String(layoutVersion),
      String(turn),
      closed,
      cameFrom ?? '',
      mustBeUnwritten ? String(meta.seq) : '',
    ],
  )) as [number, number | string];
  saw(bucket, Number(latest));
  return answer;
}
