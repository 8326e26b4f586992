// The raw side of the Postgres store, for `semel store copy`. Changing the ledger's state waits until nobody writes: every
// write holds the same advisory lock in shared mode.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../core/clock.ts';
import { groupBy } from '../../core/older-node.ts';
import { parseDetail } from '../../store/damage.ts';
import {
  abandonFilling,
  finishFilling,
  type Standing,
  seal,
  startFilling,
  unseal,
} from '../../store/move/ledger-state.ts';
import {
  type About,
  fromRawRecord,
  type Name,
  type Raw,
  type RawRecord,
  toRawRecord,
} from '../../store/move/raw.ts';
import type { StoreEvent } from '../../store/store.ts';
import { askRow, type Connection, isTrue } from './client.ts';
import { isLockTimeout, judge } from './failure.ts';
import { openRows } from './functions.ts';
import { parseStanding } from './open.ts';
import { decode, encode, type Packed, packed } from './rows.ts';
import { newerError, qualify, schemaVersion } from './schema.ts';

interface PostgresRawOptions {
  readonly query: Connection['query'];
  readonly schema: string;
  readonly where: string;
  readonly address: string;
  readonly random: Random;
  /** Opens the ledger even while it is closed to users. */
  open(): Promise<unknown>;
}

/** Attempts to get the exclusive lock, one second each. */
const mostTries = 30;

const namesTable = 'pg_catalog.json_to_recordset($1::text::json) AS x (namespace text, key text)';

const selected = `r.namespace, r.key, semel.now_ms() AS now, pg_catalog.json_build_array(${packed()})::text AS found`;

export function postgresRaw(options: PostgresRawOptions): Raw {
  const { query, schema, where, random } = options;
  const sql = (text: string) => qualify(schema, text);
  let opening: Promise<unknown> | undefined;

  return {
    about: () => withOpenLedger(about),
    page: ({ openOnly, after, limit }) =>
      withOpenLedger(async () => {
        const [namespace, key] = after === undefined ? ['', ''] : (JSON.parse(after) as [string, string]);
        const rows = await query(
          sql(`SELECT ${selected} FROM semel.records r WHERE (r.namespace, r.key) > ($1::text, $2::text)
            ${openOnly ? `AND ${openRows}` : ''} ORDER BY r.namespace, r.key LIMIT $3`),
          [namespace, key, limit],
        );
        const records = await withEvents(rows);
        const last = records.at(-1)?.row;
        return { records, next: last && JSON.stringify([last.namespace, last.key]) };
      }),
    find: (names) =>
      withOpenLedger(async () => {
        const rows = await query(
          sql(`SELECT ${selected} FROM ${namesTable}
            JOIN semel.records r ON r.namespace = x.namespace AND r.key = x.key`),
          [encodeNames(names)],
        );
        const records = new Map((await withEvents(rows)).map((record) => [joinName(record.row), record]));
        return names.map((name) => records.get(joinName(name)));
      }),
    // Written to the WAL and flushed like any commit, without changing anything.
    probe: () =>
      withOpenLedger(() => query("SELECT pg_catalog.pg_logical_emit_message(true, 'semel', 'probe')")).then(
        () => {},
      ),

    seal: (to) => changeStanding((standing) => seal(standing, to, where)),
    unseal: () => changeStanding(unseal),
    fill: (from) => changeStanding((standing, isEmpty) => startFilling(standing, from, isEmpty, where)),
    finish: (from) => changeStanding((standing) => finishFilling(standing, from, where)),
    abandon: (from) => changeStanding((standing) => abandonFilling(standing, from)),

    write: (from, { put = [], remove = [], floor = 0 }) =>
      withOpenLedger(async () => {
        const now = await readTime();
        await query(
          sql(`SELECT semel.refill($1::text, $2::text::json, $3::text::json, $4::text::json, $5::bigint)`),
          [
            from,
            JSON.stringify(put.map((record) => encodeRecord(record, now))),
            encodeNames(remove),
            JSON.stringify(put.flatMap(({ events }) => events).map(encodeEvents)),
            floor,
          ],
        );
      }),
  };

  async function withOpenLedger<T>(question: () => Promise<T>): Promise<T> {
    opening ??= options.open();
    try {
      await opening;
      return await question();
    } catch (error) {
      opening = undefined;
      throw judge(error, where).error;
    }
  }

  async function about(): Promise<About> {
    const row = await askRow(
      query,
      sql(`SELECT m.*, semel.now_ms() AS now, (SELECT pg_catalog.count(*) FROM semel.records) AS records,
        (SELECT pg_catalog.count(*) FROM semel.records WHERE ${openRows}) AS open,
        pg_catalog.pg_total_relation_size('semel.records') + pg_catalog.pg_total_relation_size('semel.events') AS bytes
        FROM semel.meta m`),
    );
    const found = row ?? {};
    if (Number(found.version) > schemaVersion) throw newerError(where);
    return {
      ...parseStanding(found),
      address: options.address,
      schema: Number(found.version),
      known: schemaVersion,
      floor: Number(found.floor),
      records: Number(found.records),
      open: Number(found.open),
      bytes: Number(found.bytes),
      now: Number(found.now),
    };
  }

  /** Compare-and-set, retried while others change it or write. */
  function changeStanding(change: (standing: Standing, isEmpty: boolean) => Standing): Promise<void> {
    return withOpenLedger(async () => {
      for (let tries = 1; ; tries += 1) {
        const row = await askRow(
          query,
          sql(`SELECT m.*, NOT EXISTS (SELECT FROM semel.records) AS empty
            FROM semel.meta m`),
        );
        const was = parseStanding(row ?? {});
        const isEmpty = isTrue(row?.empty);
        const becomes = change(was, isEmpty);
        try {
          const [answer] = await query(
            sql('SELECT semel.stand($1::text::json, $2::text::json, $3::boolean) AS done'),
            [JSON.stringify(was), JSON.stringify(becomes), becomes.filling && !was.filling],
          );
          if (isTrue(answer?.done)) return;
        } catch (error) {
          if (!isLockTimeout(error)) throw error;
          // Let the writers that wait for us go first.
          await sleep(random.fraction() * 1_000);
        }
        if (tries >= mostTries) throw new Error('the ledger is being written to without pause');
      }
    });
  }

  async function readTime(): Promise<number> {
    const [row] = await query(sql('SELECT semel.now_ms() AS now'));
    return Number(row?.now);
  }

  async function withEvents(rows: readonly Record<string, unknown>[]): Promise<readonly RawRecord[]> {
    if (rows.length === 0) return [];
    const found = rows.map(({ now, found: text }) => {
      const values = JSON.parse(text as string) as Packed;
      const time = { ...clockAt(Number(now)), steady: true };
      return { row: decode(values), time };
    });
    const events = await readEvents(found.map(({ row }) => row));
    return found.map(({ row, time }) => toRawRecord(row, events.get(joinName(row)) ?? [], time));
  }

  async function readEvents(names: readonly Name[]): Promise<ReadonlyMap<string, StoreEvent[]>> {
    const rows = await query(
      sql(`SELECT e.namespace, e.key, e.at, e.generation, e.fence, e.type, e.detail
        FROM ${namesTable} JOIN semel.events e ON e.namespace = x.namespace AND e.key = x.key ORDER BY e.n`),
      [encodeNames(names)],
    );
    const events = rows.map(
      (row): StoreEvent => ({
        at: Number(row.at),
        namespace: String(row.namespace),
        key: String(row.key),
        generation: Number(row.generation),
        fence: Number(row.fence),
        type: row.type as StoreEvent['type'],
        detail: parseDetail(row.detail as string),
      }),
    );
    return groupBy(events, joinName);
  }

  function encodeRecord(record: RawRecord, now: number): object {
    const row = fromRawRecord(record, clockAt(now));
    const revision = Math.floor(random.fraction() * Number.MAX_SAFE_INTEGER);
    return { namespace: row.namespace, key: row.key, revision, ...encode(row) };
  }
}

/** Remote stores count leases in the server's milliseconds. */
function clockAt(now: number): { wall: number; mono: number; boot: string } {
  return { wall: now, mono: now, boot: 'store' };
}

function encodeNames(names: readonly Name[]): string {
  return JSON.stringify(names.map(({ namespace, key }) => ({ namespace, key })));
}

function encodeEvents(
  { at, namespace, key, generation, fence, type, detail }: StoreEvent,
  i: number,
): object {
  return { i, at, namespace, key, generation, fence, type, detail: JSON.stringify(detail) };
}

function joinName({ namespace, key }: Name): string {
  return `${namespace}\0${key}`;
}
