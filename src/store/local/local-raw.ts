// Moving a ledger whose store reads and writes rows synchronously: memory and SQLite.

import {
  abandonFilling,
  checkFilling,
  finishFilling,
  type Standing,
  seal,
  startFilling,
  unseal,
} from '../move/ledger-state.ts';
import {
  type About,
  fromRawRecord,
  type Name,
  type Raw,
  type RawPage,
  type RawRecord,
  toRawRecord,
} from '../move/raw.ts';
import type { Backend, Transaction } from './local-store.ts';

export interface RawBackend extends Pick<Backend, 'list' | 'history' | 'namespaces' | 'peek'> {
  /** Names the ledger in messages. */
  where(): string;
  /** Opens it even if it is sealed or being filled. */
  open(): Promise<unknown>;
  /** One durable step under the lock, even if it is sealed or being filled. */
  transact<T>(work: (transaction: Transaction, standing: StandingTable) => T): Promise<T>;
  about(): Omit<About, keyof Standing | 'floor'>;
}

interface StandingTable {
  read(): Standing & { readonly floor: number };
  set(standing: Standing): void;
}

const openStatuses = ['running', 'unknown'] as const;

export function localRaw(backend: RawBackend): Raw {
  const update = (change: (standing: Standing) => Standing) =>
    whenOpen(() => backend.transact((_, table) => table.set(change(table.read()))));

  return {
    about: () =>
      whenOpen(async () => {
        const { incarnation, movedTo, cameFrom, filling, floor } = await backend.transact((_, table) =>
          table.read(),
        );
        return { ...backend.about(), incarnation, movedTo, cameFrom, filling, floor };
      }),
    page: ({ openOnly, after, limit }) => whenOpen(async () => readPage(openOnly, after, limit)),
    find: (names) => whenOpen(async () => names.map(find)),
    probe: () => whenOpen(() => backend.transact((_, table) => table.set(table.read()))),

    seal: (to) => update((standing) => seal(standing, to, backend.where())),
    unseal: () => update(unseal),
    fill: (from) =>
      update((standing) => startFilling(standing, from, backend.about().records === 0, backend.where())),
    finish: (from) => update((standing) => finishFilling(standing, from, backend.where())),
    abandon: (from) => update((standing) => abandonFilling(standing, from)),

    write: (from, { put = [], remove = [], floor = 0 }) =>
      whenOpen(() =>
        backend.transact((transaction, table) => {
          checkFilling(table.read(), from, backend.where());
          transaction.raiseFloor(floor);
          for (const name of remove) drop(transaction, name);
          for (const record of put) {
            transaction.put(fromRawRecord(record, transaction.time));
            transaction.dropEvents(record.row);
            for (const event of record.events) transaction.note(event);
          }
        }),
      ),
  };

  async function whenOpen<T>(request: () => Promise<T>): Promise<T> {
    await backend.open();
    return request();
  }

  function find({ namespace, key }: Name): RawRecord | undefined {
    const { row, time } = backend.peek(namespace, key);
    return row && toRawRecord(row, backend.history(namespace, key), time);
  }

  function readPage(openOnly: boolean, after: string | undefined, limit: number): RawPage {
    const [from, status, key] = after === undefined ? [] : (JSON.parse(after) as [string, number, string]);
    const statuses = openOnly ? openStatuses : [undefined];
    const names = backend.namespaces();
    const start = from === undefined ? 0 : names.indexOf(from);
    const left = start < 0 ? names.filter((name) => name > (from as string)) : names.slice(start);
    for (const namespace of left) {
      for (const [nth, wanted] of statuses.entries()) {
        const isCurrent = namespace === from;
        if (isCurrent && nth < (status as number)) continue;
        const asked = { namespace, limit, ...(wanted === undefined ? {} : { status: wanted }) };
        let page = backend.list({
          ...asked,
          ...(isCurrent && nth === status ? { after: key as string } : {}),
        });
        while (page.rows.length === 0 && page.next !== undefined)
          page = backend.list({ ...asked, after: page.next });
        const { rows, time } = page;
        const last = rows.at(-1);
        if (last === undefined) continue;
        return {
          records: rows.map((row) => toRawRecord(row, backend.history(row.namespace, row.key), time)),
          next: JSON.stringify([namespace, nth, last.key]),
        };
      }
    }
    return { records: [], next: undefined };
  }
}

function drop(transaction: Transaction, { namespace, key }: Name): void {
  const row = transaction.get(namespace, key);
  if (row === undefined) return;
  transaction.remove(row);
  transaction.dropEvents(row);
}
