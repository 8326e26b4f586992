// What a ledger of cells says about itself: its id, the highest fence that was removed, when it was last pruned. Read again
// every minute: a service cannot compare it with each write.

import type { Clock, Random } from '../../core/clock.ts';
import { SemelError } from '../../core/errors.ts';
import { encodeSummed, isIntact } from '../summed.ts';
import { type Cells, metaName, type StoredCell } from './cells.ts';

export interface Meta {
  /** Creates the ledger if there is none. */
  open(): Promise<void>;
  /** Refuses a ledger other than the one that was opened. */
  refresh(when?: 'now'): Promise<void>;
  floor(): number;
  raiseFloor(fence: number): Promise<void>;
  /** False: it was pruned not long ago. */
  takePruning(everyMs: number): Promise<boolean>;
}

interface Facts {
  readonly v: number;
  readonly id: string;
  readonly floor: number;
  readonly prunedAt: number;
}

export const ledgerVersion = 1;
const maxTries = 20;

export function encodeMeta(facts: Omit<Facts, 'v'>): string {
  return encodeSummed(metaName.namespace, { v: ledgerVersion, ...facts });
}

export function createMeta({
  cells,
  clock,
  random,
  where,
  now,
  refreshMs = 60_000,
}: {
  readonly cells: Cells;
  readonly clock: Clock;
  readonly random: Random;
  readonly where: string;
  readonly now: () => number;
  readonly refreshMs?: number | undefined;
}): Meta {
  let known: (Facts & Pick<StoredCell, 'tag'>) | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  return {
    async open() {
      await refresh('now');
      for (let tries = 1; known === undefined; tries += 1) {
        if (tries > maxTries || (await cells.namespaces()).length > 0) throw lostError(where);
        // Above every fence that an earlier ledger in this place may have given.
        const facts = { id: random.token(), floor: now() * 1_000, prunedAt: now() };
        await cells.swap(metaName, encodeMeta(facts), undefined);
        await refresh('now');
      }
    },
    refresh,
    floor: () => known?.floor ?? 0,
    async raiseFloor(fence) {
      await change(({ floor }) => (floor >= fence ? undefined : { floor: fence }));
    },
    takePruning: (pruneEveryMs) =>
      change(({ prunedAt }) => {
        const at = now();
        // If the clock was set back, the last time is in the future.
        return Math.abs(at - prunedAt) < pruneEveryMs ? undefined : { prunedAt: at };
      }),
  };

  function refresh(when?: 'now'): Promise<void> {
    if (when === undefined && clock.mono() - readAt < refreshMs) return Promise.resolve();
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function read(): Promise<void> {
    const askedAt = clock.mono();
    const [cell] = await cells.read([metaName]);
    if (cell === undefined && known === undefined) return;
    const facts = cell && parse(cell.text);
    if (cell === undefined || facts === undefined || (known !== undefined && known.id !== facts.id))
      throw lostError(where);
    if (facts.v > ledgerVersion)
      throw new SemelError(
        'STORE_UNSAFE',
        `The ledger in ${where} accepts writes only from newer versions of semel.`,
        {
          next: 'Nothing was run. Upgrade semel here.',
        },
      );
    known = { ...facts, floor: Math.max(facts.floor, known?.floor ?? 0), tag: cell.tag };
    readAt = askedAt;
  }

  async function change(by: (facts: Facts) => Partial<Facts> | undefined): Promise<boolean> {
    for (let tries = 1; tries <= maxTries; tries += 1) {
      if (tries > 1 || known === undefined) await refresh('now');
      if (known === undefined) throw lostError(where);
      const changes = by(known);
      if (changes === undefined) return false;
      const { tag: before, ...facts } = known;
      const text = encodeMeta({ ...facts, ...changes });
      const tag = await cells.swap(metaName, text, before);
      if (tag === undefined) continue;
      known = { ...facts, ...changes, tag };
      return true;
    }
    throw new Error('the ledger is being changed without pause');
  }
}

function parse(text: string): Facts | undefined {
  try {
    if (!isIntact(metaName.namespace, text)) return undefined;
    const { sum: _, ...facts } = JSON.parse(text) as Partial<Facts> & { readonly sum: number };
    const { v, id, floor, prunedAt } = facts;
    const isWhole = typeof v === 'number' && typeof id === 'string' && id !== '';
    return isWhole && Number.isSafeInteger(floor) && Number.isSafeInteger(prunedAt)
      ? (facts as Facts)
      : undefined;
  } catch {
    return undefined;
  }
}

function lostError(where: string): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `The ledger in ${where} is not the one that was there before, or has lost records: effects could be repeated.`,
    {
      next: 'Nothing was run. Restore it from a backup. If what is lost does not matter, use another, empty place, and import what you know.',
    },
  );
}
