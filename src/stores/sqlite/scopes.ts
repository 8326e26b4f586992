// Namespace and contract of a key (its part up to the slash) are stored once; other tables refer to the pair by number.

import { crc32 } from 'node:zlib';
import { query, type SqliteLike } from './client.ts';
import { damagedLedger } from './failure.ts';

/** What many keys share: a namespace, and a contract with its slash. */
export interface Scope {
  readonly id: number;
  readonly namespace: string;
  readonly contract: string;
}

export interface Scopes {
  findId(namespace: string, contract: string): number | undefined;
  ensureId(namespace: string, contract: string): number;
  getById(id: number): Scope;
  /** A namespace's scopes from this contract on, in key order. */
  from(namespace: string, contract: string): Iterable<Scope>;
  namespaces(): readonly string[];
  /** Throws if one was changed or is missing. */
  verify(): void;
  /** After a rollback, which removed any scope that the transaction added. */
  forget(): void;
}

/** Maximum number of cached scopes. */
const maxKnown = 10_000;
/** Scopes per query: a page of records needs few, even of a hundred thousand. */
const chunk = 200;
/** Up to this many, each new scope verifies all of them. */
const alwaysVerified = 200;

export function createScopes(database: SqliteLike): Scopes {
  const find = query(database, 'SELECT id, sum FROM scopes WHERE namespace = ? AND contract = ?');
  const findById = query(database, 'SELECT namespace, contract FROM scopes WHERE id = ?');
  const findFrom = query(
    database,
    `SELECT id, contract FROM scopes WHERE namespace = ? AND contract >= ? ORDER BY contract LIMIT ${chunk}`,
  );
  const findNamespaces = query(database, 'SELECT DISTINCT namespace FROM scopes ORDER BY namespace');
  const add = query(database, 'INSERT INTO scopes (namespace, contract, sum) VALUES (?, ?, ?) RETURNING id');
  const findLast = query(database, 'SELECT max(id) FROM scopes');
  const findAfter = query(
    database,
    'SELECT id, namespace, contract, sum FROM scopes NOT INDEXED WHERE id > ? ORDER BY id',
  );
  const known = new Map<string, Map<string, number>>();
  let size = 0;
  /** How many there were when all were last verified, and the last number verified since. */
  let whole = 0;
  let verified = 0;

  return {
    findId,
    ensureId(namespace, contract) {
      const found = findId(namespace, contract);
      if (found !== undefined) return found;
      verifyNew();
      const id = add.get(namespace, contract, checksumName(namespace, contract))?.[0] as number;
      remember(namespace, contract, id);
      return id;
    },
    getById(id) {
      const found = findById.get(id) as [string, string] | undefined;
      if (found === undefined) throw damagedNames(`there is none with the number ${id}`);
      const [namespace, contract] = found;
      return { id, namespace, contract };
    },
    *from(namespace, start) {
      for (let next = start; ; ) {
        const found = findFrom.all(namespace, next) as [number, string][];
        for (const [id, contract] of found) yield { id, namespace, contract };
        if (found.length < chunk) return;
        next = `${found.at(-1)?.[1]}\0`;
      }
    },
    namespaces: () => findNamespaces.all().map(([namespace]) => namespace as string),
    verify,
    forget,
  };

  function findId(namespace: string, contract: string): number | undefined {
    const id = known.get(namespace)?.get(contract);
    if (id !== undefined) return id;
    const [found, sum] = (find.get(namespace, contract) ?? []) as [number?, number?];
    if (found === undefined) return undefined;
    // The id comes from the index, the checksum from the table. With a wrong id, existing records would seem absent.
    if (sum !== checksumName(namespace, contract))
      throw damagedNames(`${contract} of ${namespace} leads elsewhere`);
    remember(namespace, contract, found);
    return found;
  }

  /**
   * A contract that is not found may be one whose name was damaged; adding it again would hide all of its records.
   * Verifying all for each new one would be quadratic, so all are verified each time their number has grown by half, and
   * only the new ones in between.
   */
  function verifyNew(): void {
    const last = (findLast.get()?.[0] ?? 0) as number;
    if (last <= alwaysVerified || last > whole * 1.5) verify();
    else verifyAfter(verified);
  }

  function verify(): void {
    verifyAfter(0);
    whole = verified;
  }

  function verifyAfter(start: number): void {
    let last = start;
    for (const [id, namespace, contract, sum] of findAfter.all(start)) {
      last += 1;
      if (sum !== checksumName(namespace as string, contract as string))
        throw damagedNames(`${contract} of ${namespace} is not what was written`);
      if (id !== last) throw damagedNames(`one before the number ${id} is missing`);
      const found = find.get(namespace as string, contract as string)?.[0];
      if (found !== id) throw damagedNames(`${contract} of ${namespace} is not found by its name`);
    }
    verified = last;
  }

  function remember(namespace: string, contract: string, id: number): void {
    if (size >= maxKnown) clear();
    const ids = known.get(namespace) ?? new Map<string, number>();
    known.set(namespace, ids.set(contract, id));
    size += 1;
  }

  function clear(): void {
    known.clear();
    size = 0;
  }

  function forget(): void {
    clear();
    whole = 0;
    verified = 0;
  }
}

function damagedNames(problem: string): Error {
  return damagedLedger(`its list of contracts is wrong: ${problem}`);
}

function checksumName(...parts: readonly (string | number)[]): number {
  return crc32(parts.join('\0'));
}

/** The contract with its slash, and the rest. */
export function splitKey(key: string): [contract: string, rest: string] {
  const cut = key.indexOf('/') + 1;
  return [key.slice(0, cut), key.slice(cut)];
}
