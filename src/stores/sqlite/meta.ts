// The ledger's own row in `meta`, read at the start of every transaction.

import type { Anchor } from '../../store/clock-check.ts';
import type { Standing } from '../../store/move/ledger-state.ts';
import { query, type SqliteLike } from './client.ts';

export interface Meta extends Standing {
  readonly schema: number;
  /** How many transactions have written. */
  readonly writes: number;
  /** The highest fence that pruning has removed. */
  readonly floor: number;
  readonly anchor: Anchor;
}

interface LossAccepted {
  readonly at: number;
  readonly by: string | undefined;
  readonly note: string | undefined;
}

type MetaRow = [
  ...[schema: number, writes: number, incarnation: string, floor: number],
  ...[movedTo: string | null, cameFrom: string | null, filling: number],
  ...[boot: string, wall: number, uptime: number, seen: number],
];

export interface MetaTable {
  /** Undefined if the row is missing. */
  read(): Meta | undefined;
  setIncarnation(incarnation: string): void;
  setFloor(floor: number): void;
  setAnchor(anchor: Anchor): void;
  setStanding(standing: Standing): void;
  /** Also adds to the sums over the checksums of all and of the open records. */
  setWrites(writes: number, allChange: number, openChange: number): void;
  acceptLoss(said: { readonly at: number; readonly by: string; readonly note: string | null }): void;
  lossAccepted(): LossAccepted | undefined;
  setBackup(at: number): void;
  backupAt(): number | undefined;
}

export function createMetaTable(database: SqliteLike): MetaTable {
  const find = query(
    database,
    `SELECT schema, writes, incarnation, floor, moved_to, came_from, filling,
     anchor_boot, anchor_wall, anchor_uptime, anchor_seen FROM meta`,
  );
  const setIncarnation = database.prepare('UPDATE meta SET incarnation = ?');
  const setFloor = database.prepare('UPDATE meta SET floor = ?');
  const setAnchor = database.prepare(
    'UPDATE meta SET anchor_boot = ?, anchor_wall = ?, anchor_uptime = ?, anchor_seen = ?',
  );
  const setStanding = database.prepare('UPDATE meta SET moved_to = ?, came_from = ?, filling = ?');
  const setWrites = database.prepare(
    `UPDATE meta SET writes = ?, all_sum = (all_sum + ?) & ${0xffffffff}, open_sum = (open_sum + ?) & ${0xffffffff}`,
  );
  const acceptLoss = database.prepare('UPDATE meta SET loss_at = ?, loss_by = ?, loss_note = ?');
  const findLoss = query(database, 'SELECT loss_at, loss_by, loss_note FROM meta WHERE loss_at IS NOT NULL');
  const setBackup = database.prepare('UPDATE meta SET backup_at = ?');
  const findBackup = query(database, 'SELECT backup_at FROM meta');
  return {
    setBackup: (at) => void setBackup.run(at),
    backupAt: () => (findBackup.get()?.[0] as number | null | undefined) ?? undefined,
    setWrites: (writes, allChange, openChange) => void setWrites.run(writes, allChange, openChange),
    acceptLoss: ({ at, by, note }) => void acceptLoss.run(at, by, note),
    lossAccepted() {
      const [at, by, note] = findLoss.get() ?? [];
      if (at === undefined) return undefined;
      return {
        at: at as number,
        by: (by as string) || undefined,
        note: (note as string | null) ?? undefined,
      };
    },
    read() {
      const row = find.get();
      if (row === undefined) return undefined;
      const [schema, writes, incarnation, floor, movedTo, cameFrom, filling, ...anchor] = row as MetaRow;
      const [boot, wall, uptime, seen] = anchor;
      return {
        schema,
        writes,
        incarnation,
        floor,
        movedTo,
        cameFrom,
        filling: filling === 1,
        anchor: { boot, wall, uptime, seen },
      };
    },
    setIncarnation: (incarnation) => void setIncarnation.run(incarnation),
    setFloor: (floor) => void setFloor.run(floor),
    setAnchor: ({ boot, wall, uptime, seen }) => void setAnchor.run(boot, wall, uptime, seen),
    setStanding: ({ movedTo, cameFrom, filling }) => void setStanding.run(movedTo, cameFrom, filling ? 1 : 0),
  };
}
