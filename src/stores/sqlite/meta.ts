// What the ledger says of itself: one row, read at the start of every transaction.

import type { Anchor } from '../../store/anchor.ts';
import { query, type SqliteLike } from './driver.ts';

export interface Meta {
  readonly schema: number;
  readonly incarnation: string;
  /** The highest fence that pruning ever removed. */
  readonly floor: number;
  readonly movedTo: string | null;
  readonly anchor: Anchor;
}

export interface MetaTable {
  /** Undefined where the ledger has lost it. */
  read(): Meta | undefined;
  setFloor(floor: number): void;
  setAnchor(anchor: Anchor): void;
}

export function metaTable(database: SqliteLike): MetaTable {
  const find = query(
    database,
    `SELECT schema, incarnation, floor, moved_to, anchor_boot, anchor_wall, anchor_uptime, anchor_seen FROM meta`,
  );
  const setFloor = database.prepare('UPDATE meta SET floor = ?');
  const setAnchor = database.prepare(
    'UPDATE meta SET anchor_boot = ?, anchor_wall = ?, anchor_uptime = ?, anchor_seen = ?',
  );
  return {
    read() {
      const row = find.get();
      if (row === undefined) return undefined;
      const [schema, incarnation, floor, movedTo, boot, wall, uptime, seen] = row as [
        number,
        string,
        number,
        string | null,
        string,
        number,
        number,
        number,
      ];
      return { schema, incarnation, floor, movedTo, anchor: { boot, wall, uptime, seen } };
    },
    setFloor: (floor) => void setFloor.run(floor),
    setAnchor: ({ boot, wall, uptime, seen }) => void setAnchor.run(boot, wall, uptime, seen),
  };
}
