// The newest records, by row id: rows are in the order of their claims. Reads a bounded number of rows, never the whole table.

import { view } from '../../rules/state.ts';
import { isDamaged, readOrDamage } from '../../store/damage.ts';
import type { Backend } from '../../store/local/local-store.ts';
import type { Recent, RecentPage, RecentQuery, RecentRecord } from '../../store/recent.ts';
import { query, type SqliteLike } from './client.ts';
import { decode, selected } from './rows.ts';
import type { Scope } from './scopes.ts';
import type { Ledger } from './transaction/ledger.ts';
import type { Session } from './transaction/session.ts';

/** Ids start at 1 and never reach it. */
const end = Number.MAX_SAFE_INTEGER;

export function sqliteRecent({ time, read }: Ledger, backend: Backend): Recent {
  const prepared = new WeakMap<Session, Statements>();
  // Few programs look at a ledger, so that opening it prepares nothing for them.
  const statementsOf = (session: Session) => {
    const known = prepared.get(session) ?? prepare(session.database);
    prepared.set(session, known);
    return known;
  };
  return {
    async pulse() {
      await backend.open();
      return read((session) => String(statementsOf(session).writes.get()?.[0]));
    },
    async newest(asked) {
      await backend.open();
      return read((session) => page(session, statementsOf(session), asked));
    },
    async newestKeys(asked) {
      await backend.open();
      return read((session) => {
        const { scopes, ids } = scopesOf(session, asked.namespace);
        const found = statementsOf(session).keys.all(belowOf(asked.before), Number(asked.downTo ?? 0), ids);
        return found.map(([id, rest]) => (scopes.get(id as number) as Scope).contract + rest);
      });
    },
  };

  function page(session: Session, statements: Statements, asked: RecentQuery): RecentPage {
    const { namespace, text = null } = asked;
    const { scopes, ids, range, below } = boundsOf(session, statements, asked);
    if (range === undefined) return { items: [], looked: 0, next: undefined };
    const found = statements.newest.all(
      below,
      range.last,
      ids,
      text,
      ...(text === null ? nothing : sought(text)),
    );
    const now = time.now();
    const items = found.flatMap(([scopeId, rest, ...values]): RecentRecord[] => {
      const key = (scopes.get(scopeId as number) as Scope).contract + (rest as string);
      const row = readOrDamage(() => decode(namespace, key, values));
      if (isDamaged(row)) return [];
      return [{ record: view(row, now), history: session.events.of(namespace, key) }];
    });
    return { items, looked: range.looked, next: range.next };
  }
}

interface Bounds {
  readonly scopes: ReadonlyMap<number, Scope>;
  readonly ids: string;
  readonly below: number;
  /** Undefined: there are no rows. */
  readonly range:
    | { readonly last: number; readonly looked: number; readonly next: string | undefined }
    | undefined;
}

function boundsOf(
  session: Session,
  statements: Statements,
  { namespace, before, rows }: Omit<RecentQuery, 'text'>,
): Bounds {
  const below = belowOf(before);
  const [looked = 0, last = null] = statements.range.get(below, rows) as [number?, (number | null)?];
  const range = last === null ? undefined : { last, looked, next: looked < rows ? undefined : String(last) };
  return { ...scopesOf(session, namespace), below, range };
}

function belowOf(before: string | undefined): number {
  return before === undefined ? end : Number(before);
}

function scopesOf(session: Session, namespace: string): Pick<Bounds, 'scopes' | 'ids'> {
  const scopes = new Map<number, Scope>();
  for (const scope of session.scopes.from(namespace, '')) scopes.set(scope.id, scope);
  return { scopes, ids: JSON.stringify([...scopes.keys()]) };
}

type Statements = ReturnType<typeof prepare>;

const nothing = [null, null] as const;

/** As it is in a key, and as JSON writes it inside a text. */
function sought(text: string): readonly [string, string] {
  return [text, JSON.stringify(text).slice(1, -1)];
}

/** One text to search: a separator that JSON never has keeps a match from crossing two columns. */
const searched = 'concat_ws(char(1), args, content, result, asker, more, owner)';

function prepare(database: SqliteLike) {
  return {
    writes: query(database, 'SELECT writes FROM meta'),
    range: query(
      database,
      'SELECT count(*), min(id) FROM (SELECT id FROM records WHERE id < ? ORDER BY id DESC LIMIT ?)',
    ),
    keys: query(
      database,
      `SELECT scope, key FROM records NOT INDEXED
       WHERE id < ? AND id >= ? AND scope IN (SELECT value FROM json_each(?)) ORDER BY id DESC`,
    ),
    // NOT INDEXED: by row id, whatever the planner thinks of the scopes.
    newest: query(
      database,
      `SELECT scope, key, ${selected} FROM records NOT INDEXED
       WHERE id < ? AND id >= ? AND scope IN (SELECT value FROM json_each(?))
       AND (? IS NULL OR instr((SELECT contract FROM scopes WHERE scopes.id = scope) || key, ?) > 0
         OR instr(${searched}, ?) > 0)
       ORDER BY id DESC`,
    ),
  };
}
