// The outbox of a SQLite ledger. Its writes share the group commit of the ledger's own.

import type { Backend } from '../../store/local/local-store.ts';
import type { Outbox } from '../../store/outbox.ts';
import type { OutboxRows } from './outbox-rows.ts';
import type { Ledger } from './transaction/ledger.ts';

export function sqliteOutbox(ledger: Ledger, { open, transact }: Pick<Backend, 'open' | 'transact'>): Outbox {
  const write = <Request, Answer>(change: (rows: OutboxRows, request: Request, now: number) => Answer) =>
    transact('settling', ({ time }, request: Request) => change(ledger.session().outbox, request, time.wall));
  const read = async <Answer>(look: (rows: OutboxRows) => Answer) => {
    await open();
    return ledger.read(({ outbox }) => look(outbox));
  };
  const take = write((rows, asked: Parameters<Outbox['take']>[0], now) => rows.take(asked, now));
  const keep = write(
    (rows, { held, holdMs }: { held: Parameters<Outbox['keep']>[0]; holdMs: number }, now) => ({
      dueAt: now + holdMs,
      kept: rows.keep(held, now + holdMs),
    }),
  );

  return {
    removesLanded: true,
    async take(asked) {
      // An idle relay needs no lock.
      if (!(await read((rows) => rows.hasDue(asked, ledger.time.now().wall)))) return [];
      return take(asked);
    },
    keep: (held, holdMs) => keep({ held, holdMs }),
    mark: write((rows, row: Parameters<Outbox['mark']>[0]) => rows.mark(row)),
    remove: write((rows, n: number) => void rows.remove(n)),
    putBack: write((rows, row: Parameters<Outbox['putBack']>[0], now) => rows.putBack(row, now)),
    list: (asked) => read((rows) => rows.list(asked)),
    count: (namespaces) => read((rows) => rows.count(namespaces, ledger.time.now().wall)),
    find: (namespace, key) => read((rows) => rows.find(namespace, key)),
    retry: write((rows, n: number) => rows.retry(n)),
    drop: write((rows, n: number) => rows.remove(n)),
  };
}
