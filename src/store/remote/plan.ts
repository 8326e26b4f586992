// What a store far away is asked: the rules decide on the row as this process last saw it, and a swap is made of it
// that is done only if they were right.

import type { Random } from '../../core/clock.ts';
import { type KeyMap, keyMap } from '../../core/key-map.ts';
import type { Step, Time } from '../../rules/state.ts';
import type { Row, StoreEvent } from '../store.ts';
import type { Found, Swap, Write } from './backend.ts';
import type { RemoteClock } from './clock.ts';
import type { LastSeen } from './last-seen.ts';

/** One question about one key (and the earlier forms of it), until it is answered. */
export interface Piece {
  readonly namespace: string;
  readonly keys: readonly string[];
  readonly rerunWithinMs: number | null;
  decide(rows: readonly (Row | undefined)[], time: Time): Decision<unknown>;
  /** What the store said of its keys when it was asked last: good for one decision. */
  seen: readonly (Found | undefined)[] | undefined;
  /** Once it is answered: how. */
  tell: Tell | undefined;
}

export interface Decision<Answer> extends Step<Answer> {
  /** Which of the keys it is about. @default 0 */
  readonly form?: number;
}

export type Tell = () => unknown;

/** The pieces that are answered by one swap, and how. */
export interface Plan {
  readonly pieces: readonly Piece[];
  readonly swaps: readonly Swap[];
  readonly tells: readonly Tell[];
  /** Nothing changes, and that was decided by what the store has just said. */
  readonly isOver: boolean;
}

export interface Planner {
  /**
   * What is asked about the same keys is decided in turn, on one evolving row. `saidAt`: the store has just said what
   * is there, as of then; so that nothing changes is an answer only now, and as of then.
   */
  planOf(pieces: readonly Piece[], saidAt?: number): Plan;
  /** So long after they were made the last decisions reached the store. */
  took(ms: number): void;
  newRevision(): number;
}

/** How old a decision may be when it reaches a store that answers as usual, and one that is slow. */
const staleMs = 2_000;
const stalestMs = 30_000;

export function planner({
  memory,
  far,
  random,
}: {
  readonly memory: LastSeen;
  readonly far: RemoteClock;
  readonly random: Random;
}): Planner {
  let patienceMs = staleMs;

  return {
    planOf,
    // A store that is slow for everybody would otherwise find every decision too old, for ever.
    took(ms) {
      patienceMs = Math.min(stalestMs, Math.max(staleMs, 2 * ms));
    },
    newRevision,
  };

  function planOf(pieces: readonly Piece[], saidAt?: number): Plan {
    const [{ namespace, keys }] = pieces as [Piece, ...Piece[]];
    const isFresh = pieces.every(({ seen }) => seen !== undefined);
    const remembered = (isFresh && pieces[0]?.seen) || keys.map((key) => memory.get(namespace, key));
    if (remembered.some((one) => one === 'look')) return look(pieces);
    const found = remembered as readonly (Found | undefined)[];

    const time = timeFor(found, saidAt);
    const rows = found.map((one) => one?.row);
    const events: StoreEvent[] = [];
    const tells: Tell[] = [];
    let target: number | undefined;
    for (const piece of pieces) {
      try {
        const { form = 0, row, answer, events: noted } = piece.decide(rows, time);
        const writes = row !== null || noted.length > 0;
        // The rest waits for the next turn: a swap is about one key.
        if (writes && target !== undefined && target !== form) break;
        // And the store compares the fence of a new record with its floor: there must be no lower one before it.
        const isBorn = found[form] === undefined && rows[form] !== undefined;
        if (isBorn && row !== null && row.fence !== rows[form]?.fence) break;
        if (writes) target = form;
        if (row !== null) rows[form] = row;
        events.push(...noted);
        tells.push(() => answer);
      } catch (error) {
        tells.push(() => {
          throw error;
        });
      }
    }
    if (target === undefined)
      return saidAt === undefined ? look(pieces) : { pieces, swaps: [], tells, isOver: true };
    // News about a record that is gone is checked against nothing: that it is gone must be known, not guessed.
    if (rows[target] === undefined && !isFresh) return look(pieces);
    const write: Write = {
      before: found[target],
      row: rows[target],
      revision: newRevision(),
      events,
      at: time.wall,
      until: turnAfter(time, found, pieces, time.wall + patienceMs),
      beside: keys.length === 1 ? alone : besideOf(keys, target, found),
    };
    return {
      pieces: tells.length === pieces.length ? pieces : pieces.slice(0, tells.length),
      // The other forms are looked at along with it: if it is not done, one of them may be why.
      swaps: keys.map((key, index) => ({ namespace, key, write: index === target ? write : undefined })),
      tells,
      isOver: false,
    };
  }

  /** Never before what is already written: the store's clock was there, unless it was set back. */
  function timeFor(found: readonly (Found | undefined)[], saidAt: number | undefined): Time {
    const { wall: thought, boot, steady } = far.now();
    const earliest = saidAt ?? thought;
    let wall = earliest;
    for (const one of found) {
      const updatedAt = one?.row.updatedAt ?? 0;
      if (updatedAt > wall && updatedAt <= earliest + staleMs) wall = updatedAt;
    }
    return { wall, mono: wall, boot, steady };
  }

  function newRevision(): number {
    return Math.floor(random.fraction() * Number.MAX_SAFE_INTEGER);
  }
}

export function look(pieces: readonly Piece[]): Plan {
  const [{ namespace, keys }] = pieces as [Piece, ...Piece[]];
  const swaps = keys.map((key) => ({ namespace, key, write: undefined }));
  return { pieces, swaps, tells: [], isOver: false };
}

const alone: Write['beside'] = [];

function besideOf(
  keys: readonly string[],
  target: number,
  found: readonly (Found | undefined)[],
): Write['beside'] {
  return keys.flatMap((key, index) => (index === target ? [] : [{ key, revision: found[index]?.revision }]));
}

/** The next instant at which a rule might decide otherwise, and none after the last. */
function turnAfter(
  { wall }: Time,
  found: readonly (Found | undefined)[],
  pieces: readonly Piece[],
  last: number,
): number {
  let turn = last;
  const turnsAt = (instant: number | null): void => {
    if (instant !== null && instant > wall && instant < turn) turn = instant;
  };
  for (const one of found) {
    if (one === undefined) continue;
    const { leaseUntil, expiresAt, quietAt, firstDispatchedAt } = one.row;
    turnsAt(leaseUntil);
    turnsAt(expiresAt);
    turnsAt(quietAt);
    if (firstDispatchedAt === null) continue;
    for (const { rerunWithinMs } of pieces)
      if (rerunWithinMs !== null) turnsAt(firstDispatchedAt + rerunWithinMs);
  }
  return turn;
}

/** Pieces about the same keys, in the order in which they came. */
export function groups(pieces: readonly Piece[]): readonly (readonly Piece[])[] {
  const byKeys: KeyMap<Piece[]> = keyMap();
  const found: Piece[][] = [];
  for (const piece of pieces) {
    const name = piece.keys.length === 1 ? (piece.keys[0] as string) : piece.keys.join('\0');
    const group = byKeys.get(piece.namespace, name);
    if (group !== undefined) group.push(piece);
    else {
      const started = [piece];
      byKeys.set(piece.namespace, name, started);
      found.push(started);
    }
  }
  return found;
}

/** It was decided in time and by what is there, and yet not done: there is no hurry to ask again. */
export function isUnchanged(
  swaps: readonly Swap[],
  seen: readonly (Found | undefined)[],
  now: number,
  floor: number,
): boolean {
  return swaps.some(({ write }, index) => {
    const found = seen[index];
    if (write?.row === undefined || found?.revision !== write.before?.revision) return false;
    const isUnspoilt = write.beside.every(({ key, revision }) => {
      const other = swaps.findIndex((swap) => swap.key === key);
      return seen[other]?.revision === revision;
    });
    // Where the store's clock was set back a little, the row is of a moment that is still to come.
    const isInTime = now < write.until && (write.at <= now || now < (found?.row.updatedAt ?? 0));
    return isUnspoilt && isInTime && (write.before !== undefined || write.row.fence > floor);
  });
}
