// Remembers cells as they were last seen, with their tags, so that a write needs no read before it. A reader that finds a
// pending record settles it, because its writer may be gone.

import { type KeyMap, keyMap } from '../../core/key-map.ts';
import { type Cell, decodeCell, encodeGrave, encodeRecord, type Pending } from './cell.ts';
import type { CellName, Cells, StoredCell } from './cells.ts';

/** A cell, and the tag that it had. */
export interface KnownCell {
  readonly cell: Cell;
  readonly text: string;
  readonly tag: string;
}

export interface KnownCells {
  /** As it was last seen here. */
  guess(name: CellName): KnownCell | undefined;
  read(name: CellName): Promise<KnownCell | undefined>;
  readAll(names: readonly CellName[]): Promise<readonly (KnownCell | undefined)[]>;
  /** Undefined: the cell has another tag by now, or the reply was lost. */
  write(name: CellName, text: string, tag: string | undefined): Promise<KnownCell | undefined>;
  /** Reads a cell and replaces it, again while others change it. False: there is nothing to change. */
  change(name: CellName, replace: (cell: Cell) => string | undefined): Promise<boolean>;
  /** Whether the records that a write depends on are as it expects, pending or not: two that wait for each other are both undone. */
  areUnchanged(namespace: string, beside: Pending['beside']): Promise<boolean>;
  /** Commits or undoes a pending record. */
  settle(name: CellName, known: KnownCell): Promise<KnownCell | undefined>;
}

export interface KnownCellsOptions {
  readonly cells: Cells;
  readonly nowMs: () => number;
  /** For messages. */
  readonly where: string;
}

/** How often a write is tried while others change the cell without changing the record. */
export const maxTries = 8;
/** Cells whose tags are remembered. */
const capacity = 5_000;

export function knownCells({ cells, nowMs, where }: KnownCellsOptions): KnownCells {
  let seen: KeyMap<KnownCell> = keyMap();

  return {
    guess: ({ namespace, key }) => seen.get(namespace, key),
    read,
    readAll,
    write,
    async change(name, replace) {
      for (let tries = 1; tries <= maxTries; tries += 1) {
        const known = await read(name);
        const text = known && replace(known.cell);
        if (known === undefined || text === undefined) return false;
        if ((await write(name, text, known.tag)) !== undefined) return true;
      }
      throw new Error(`the record ${name.key} is being changed without pause, in ${where}`);
    },
    areUnchanged,
    settle,
  };

  async function read(name: CellName): Promise<KnownCell | undefined> {
    const [known] = await readAll([name]);
    return known;
  }

  function readAll(names: readonly CellName[]): Promise<readonly (KnownCell | undefined)[]> {
    if (names.length === 0) return Promise.resolve([]);
    return cells.read(names).then((found) =>
      Promise.all(
        found.map((one, n) => {
          const name = names[n] as CellName;
          if (one !== undefined) return settle(name, remember(name, one));
          seen.delete(name.namespace, name.key);
          return undefined;
        }),
      ),
    );
  }

  async function write(
    name: CellName,
    text: string,
    before: string | undefined,
  ): Promise<KnownCell | undefined> {
    const tag = await cells.swap(name, text, before);
    return tag === undefined ? undefined : remember(name, { text, tag });
  }

  function remember({ namespace, key }: CellName, { text, tag }: StoredCell): KnownCell {
    const known = { cell: decodeCell(namespace, text, key), text, tag };
    if (seen.size() >= capacity) seen = keyMap();
    seen.set(namespace, key, known);
    return known;
  }

  async function areUnchanged(namespace: string, beside: Pending['beside']): Promise<boolean> {
    if (beside.length === 0) return true;
    const others = await cells.read(beside.map(([key]) => ({ namespace, key })));
    return beside.every(([key, revision], n) => {
      const other = others[n];
      const there = other && decodeCell(namespace, other.text, key).found;
      return (there?.revision ?? null) === revision;
    });
  }

  async function settle(name: CellName, known: KnownCell): Promise<KnownCell | undefined> {
    const { pending, found, events, fence } = known.cell;
    if (pending === undefined || found === undefined) return known;
    const text = (await areUnchanged(name.namespace, pending.beside))
      ? encodeRecord(found, events)
      : (pending.undo ?? encodeGrave(name, fence, nowMs()));
    // Otherwise another process did it, or the reply was lost.
    return (await write(name, text, known.tag)) ?? read(name);
  }
}
