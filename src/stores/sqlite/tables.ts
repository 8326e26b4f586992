// The statements, prepared once per connection. Nothing here opens a transaction or knows a rule.

import type { Anchor } from '../../store/anchor.ts';
import type { Row, StoreEvent } from '../../store/store.ts';
import { query, type SqliteLike, type SqliteValue } from './driver.ts';
import { columns, decode, dispatchedFlag, encode, openStatuses, selected, statusCode } from './rows.ts';

export interface Meta {
  readonly schema: number;
  readonly floor: number;
  readonly movedTo: string | null;
  readonly anchor: Anchor | undefined;
}

/** A namespace and a contract with its slash: what the keys of a ledger have in common. */
export interface Scope {
  readonly id: number;
  readonly namespace: string;
  readonly contract: string;
}

export interface Filter {
  readonly openOnly: boolean;
  readonly status: number | null;
  readonly conversation: string | null;
  readonly limit: number;
}

export interface ExpiryEntry {
  readonly hour: number;
  readonly scope: Scope;
  readonly prefix: string;
  readonly last: number;
}

export type Tables = ReturnType<typeof tables>;

const hourMs = 3_600_000;
const minuteMs = 60_000;
/** More scopes than this are looked up again rather than remembered. */
const rememberedScopes = 10_000;

export function tables(database: SqliteLike) {
  const meta = query(
    database,
    'SELECT schema, floor, moved_to, anchor_boot, anchor_wall, anchor_uptime, anchor_seen FROM meta',
  );
  const setFloor = database.prepare('UPDATE meta SET floor = ?');
  const setAnchor = database.prepare(
    'UPDATE meta SET anchor_boot = ?, anchor_wall = ?, anchor_uptime = ?, anchor_seen = ?',
  );

  const scopeId = query(database, 'SELECT id FROM scopes WHERE namespace = ? AND contract = ?');
  const scopeById = query(database, 'SELECT namespace, contract FROM scopes WHERE id = ?');
  const scopesFrom = query(
    database,
    'SELECT id, contract FROM scopes WHERE namespace = ? AND contract >= ? ORDER BY contract',
  );
  const addScope = query(database, 'INSERT INTO scopes (namespace, contract) VALUES (?, ?) RETURNING id');

  const get = query(database, `SELECT ${selected} FROM records WHERE scope = ? AND key = ?`);
  const insert = database.prepare(
    `INSERT INTO records (${columns.join(', ')}, scope, key) VALUES (${columns.map(() => '?').join(', ')}, ?, ?)`,
  );
  const update = database.prepare(
    `UPDATE records SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE scope = ? AND key = ?`,
  );
  // A renewal: the index of open records is left alone.
  const updateMore = database.prepare('UPDATE records SET more = ? WHERE scope = ? AND key = ?');
  const remove = database.prepare('DELETE FROM records WHERE scope = ? AND key = ?');
  const list = (index: string, condition: string) =>
    query(
      database,
      `SELECT key, ${selected} FROM records ${index} WHERE scope = ? AND key >= ? AND key < ? ${condition}
       AND ifnull(status = ?, 1) AND ifnull(asker ->> 0 = ?, ? IS NULL) ORDER BY key LIMIT ?`,
    );
  const listAll = list('', '');
  const listOpen = list('INDEXED BY open_records', `AND status IN (${openStatuses})`);

  const expiring = database.prepare(
    `INSERT INTO expiry (hour, scope, prefix, first, last) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
     WHERE excluded.first < first OR excluded.last > last`,
  );
  const expiryEntries = query(
    database,
    `SELECT hour, scope, prefix, last FROM expiry
     WHERE (hour, scope, prefix) > (?, ?, ?) AND hour <= ? AND first <= ? ORDER BY hour, scope, prefix LIMIT ?`,
  );
  const expired = query(
    database,
    `SELECT key, ${selected} FROM records WHERE scope = ? AND key >= ? AND key < ?
     AND expires IS NOT NULL AND created + expires <= ? LIMIT ?`,
  );
  const removeExpiry = database.prepare('DELETE FROM expiry WHERE hour = ? AND scope = ? AND prefix = ?');
  const neverDispatched = query(
    database,
    `SELECT scope, key, ${selected} FROM records INDEXED BY open_records WHERE status IN (${openStatuses})
     AND status = ${statusCode('running')} AND flags & ${dispatchedFlag} = 0
     AND (more ->> '$.lease[0]' IS NOT ? OR more ->> '$.lease[1]' <= ?)`,
  );

  const addEvent = database.prepare(
    `INSERT INTO events (scope, key, n, at, generation, fence, type, detail)
     SELECT ?, ?, 1 + ifnull(max(n), 0), ?, ?, ?, ?, ? FROM events WHERE scope = ? AND key = ?`,
  );
  const events = query(
    database,
    'SELECT at, generation, fence, type, detail FROM events WHERE scope = ? AND key = ? ORDER BY n',
  );

  const ids = new Map<string, number>();

  return {
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    rollback: database.prepare('ROLLBACK'),

    meta(): Meta | undefined {
      const row = meta.get();
      if (row === undefined) return undefined;
      const [schema, floor, movedTo, boot, wall, uptime, seen] = row as [
        number,
        number,
        string | null,
        string | null,
        number,
        number,
        number,
      ];
      return { schema, floor, movedTo, anchor: boot === null ? undefined : { boot, wall, uptime, seen } };
    },
    setFloor: (floor: number) => setFloor.run(floor),
    setAnchor: ({ boot, wall, uptime, seen }: Anchor) => setAnchor.run(boot, wall, uptime, seen),

    get(namespace: string, key: string): Row | undefined {
      const [contract, rest] = split(key);
      const scope = scopeOf(namespace, contract);
      const values = scope === undefined ? undefined : get.get(scope, rest);
      return values && decode(namespace, key, values);
    },
    /** `before` is the row as it stood until now. */
    put(row: Row, before: Row | undefined): void {
      const [contract, rest] = split(row.key);
      const scope = scopeOf(row.namespace, contract) ?? newScope(row.namespace, contract);
      const values = encode(row);
      if (before === undefined) insert.run(...values, scope, rest);
      else if (isRenewal(before, row, values)) updateMore.run(values.at(-1) as SqliteValue, scope, rest);
      else update.run(...values, scope, rest);
      if (row.expiresAt !== null && row.expiresAt !== before?.expiresAt) noteExpiry(scope, rest, row);
    },
    remove({ namespace, key }: Row): void {
      const [contract, rest] = split(key);
      const scope = scopeOf(namespace, contract);
      if (scope !== undefined) remove.run(scope, rest);
    },

    scopesFrom: (namespace: string, contract: string): Scope[] =>
      scopesFrom.all(namespace, contract).map(([id, name]) => ({
        id: id as number,
        namespace,
        contract: name as string,
      })),
    list(scope: Scope, from: string, before: SqliteValue, filter: Filter): Row[] {
      const { status, conversation, limit } = filter;
      const statement = filter.openOnly ? listOpen : listAll;
      return statement
        .all(scope.id, from, before, status, conversation, conversation, limit)
        .map((values) => rowOf(scope, values));
    },

    /** Where something may have expired by then, earliest first. */
    expiryEntries(by: number, after: ExpiryEntry | undefined, limit: number): ExpiryEntry[] {
      const start = after === undefined ? [-1, 0, ''] : [after.hour, after.scope.id, after.prefix];
      return expiryEntries
        .all(...start, Math.floor(by / hourMs), by, limit)
        .map(([hour, scope, prefix, last]) => ({
          hour: hour as number,
          scope: scopeWith(scope as number),
          prefix: prefix as string,
          last: last as number,
        }));
    },
    expired({ scope, prefix }: ExpiryEntry, by: number, limit: number): Row[] {
      const before = prefix.endsWith('/') ? afterAll(prefix) : `${prefix}\0`;
      return expired.all(scope.id, prefix, before, by, limit).map((values) => rowOf(scope, values));
    },
    removeExpiry: ({ hour, scope, prefix }: ExpiryEntry) => removeExpiry.run(hour, scope.id, prefix),
    /** Running, nothing dispatched, and the lease is over. */
    lapsedUndispatched: (boot: string, mono: number): Row[] =>
      neverDispatched.all(boot, mono).map(([scope, ...values]) => rowOf(scopeWith(scope as number), values)),

    note(event: StoreEvent): void {
      const [contract, rest] = split(event.key);
      const scope = scopeOf(event.namespace, contract) ?? newScope(event.namespace, contract);
      const { at, generation, fence, type, detail } = event;
      addEvent.run(scope, rest, at, generation, fence, type, JSON.stringify(detail), scope, rest);
    },
    events(namespace: string, key: string): StoreEvent[] {
      const [contract, rest] = split(key);
      const scope = scopeOf(namespace, contract);
      if (scope === undefined) return [];
      return events.all(scope, rest).map(([at, generation, fence, type, detail]) => ({
        at: at as number,
        namespace,
        key,
        generation: generation as number,
        fence: fence as number,
        type: type as StoreEvent['type'],
        detail: JSON.parse(detail as string),
      }));
    },

    /** After a rollback: a scope that was added has not been. */
    forgetScopes: () => ids.clear(),
  };

  function scopeOf(namespace: string, contract: string): number | undefined {
    const name = `${namespace}\0${contract}`;
    const known = ids.get(name);
    if (known !== undefined) return known;
    const found = scopeId.get(namespace, contract)?.[0] as number | undefined;
    if (found !== undefined) remember(name, found);
    return found;
  }

  function newScope(namespace: string, contract: string): number {
    const id = addScope.get(namespace, contract)?.[0] as number;
    remember(`${namespace}\0${contract}`, id);
    return id;
  }

  function remember(name: string, id: number): void {
    if (ids.size >= rememberedScopes) ids.clear();
    ids.set(name, id);
  }

  function scopeWith(id: number): Scope {
    const [namespace, contract] = scopeById.get(id) as [string, string];
    return { id, namespace, contract };
  }

  function noteExpiry(scope: number, rest: string, row: Row): void {
    const at = row.expiresAt as number;
    // In whole minutes, so that a neighbour's expiry seldom changes the entry.
    const first = Math.floor(at / minuteMs) * minuteMs;
    const last = Math.ceil(at / minuteMs) * minuteMs;
    expiring.run(Math.floor(at / hourMs), scope, expiryPrefix(rest, row), first, last);
  }
}

/** The contract with its slash, and the remainder. */
export function split(key: string): [contract: string, rest: string] {
  const cut = key.indexOf('/') + 1;
  return [key.slice(0, cut), key.slice(cut)];
}

/** Sorts right after every text that starts so. SQLite orders texts by their code points, and blobs after texts. */
export function afterAll(prefix: string): SqliteValue {
  const points = [...prefix].map((character) => character.codePointAt(0) as number);
  for (;;) {
    const last = points.pop();
    if (last === undefined) return new Uint8Array();
    if (last === 0x10ffff) continue;
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
  }
}

function rowOf({ namespace, contract }: Scope, [key, ...values]: readonly SqliteValue[]): Row {
  return decode(namespace, contract + (key as string), values);
}

/** The successes of one period expire together or are few; anything else is found by its whole key. */
function expiryPrefix(rest: string, { status }: Row): string {
  const isOfPeriod = status === 'succeeded' && !rest.startsWith('=') && !rest.startsWith('-/');
  return isOfPeriod ? rest.slice(0, rest.lastIndexOf('/') + 1) || rest : rest;
}

/** Only what `more` holds has changed: the usual case while an attempt runs. */
function isRenewal(before: Row, row: Row, values: readonly SqliteValue[]): boolean {
  if (before.status !== 'running' || row.status !== 'running' || before.token !== row.token) return false;
  const earlier = encode(before);
  return columns.every(
    (column, index) => column === 'more' || column === 'token' || earlier[index] === values[index],
  );
}
