// Whether the ledger may be used: its description says so, and every script that writes reads it. A change is made by what
// was found, and only if nobody has changed it since. A ledger in a cluster has a description per bucket and is not moved.

import type { Standing } from '../../store/move/ledger-state.ts';
import type { BucketMeta, Incarnation, Run } from './incarnation.ts';
import { layoutVersion, stand } from './scripts.ts';

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
