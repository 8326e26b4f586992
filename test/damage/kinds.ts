// How a ledger is damaged. Each kind changes the files in one way, at a place that chance chooses.

import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Chance } from '../processes/chance.ts';
import type { Sample } from './ledgers.ts';

export interface Kind {
  readonly name: string;
  /** Which ledgers can be damaged so. */
  readonly suits: (sample: Sample) => boolean;
  /** `path`: a copy of the sample's files. */
  damage(path: string, sample: Sample, chance: Chance): void;
}

const always = () => true;
const hasLog = ({ now }: Sample) => existsSync(`${now}-wal`);
const isSmall = ({ isLarge }: Sample) => !isLarge;
const page = 4_096;
const frame = page + 24;
const sides = ['', '-wal', '-shm'];

export const kinds: readonly Kind[] = [
  {
    name: 'log: a bit flipped',
    suits: hasLog,
    damage: (path, _, chance) => flip(`${path}-wal`, chance, liveLog(path)),
  },
  {
    name: 'log: a sector of junk',
    suits: hasLog,
    damage: (path, _, chance) => junk(`${path}-wal`, chance, liveLog(path)),
  },
  {
    name: 'log: cut off',
    suits: hasLog,
    damage: (path, _, chance) => truncateSync(`${path}-wal`, chance.whole(liveLog(path) - frame)),
  },
  { name: 'log: deleted', suits: hasLog, damage: (path) => rmSync(`${path}-wal`) },
  {
    name: 'log and index: deleted',
    suits: hasLog,
    damage: (path) => ['-wal', '-shm'].map((side) => rmSync(path + side)),
  },
  { name: 'log: an older one', suits: hasLog, damage: (path, { older }) => bring(older, path, ['-wal']) },
  {
    name: 'log and index: older ones',
    suits: hasLog,
    damage: (path, { older }) => bring(older, path, ['-wal', '-shm']),
  },
  { name: 'index: a bit flipped', suits: hasLog, damage: (path, _, chance) => flip(`${path}-shm`, chance) },
  { name: 'ledger: a bit flipped', suits: always, damage: (path, _, chance) => flip(path, chance) },
  {
    name: 'ledger: 16 bits flipped',
    suits: always,
    damage: (path, _, chance) => times(16, () => flip(path, chance)),
  },
  { name: 'ledger: a sector of junk', suits: always, damage: (path, _, chance) => junk(path, chance) },
  {
    name: 'ledger: a page of zeros',
    suits: always,
    damage: (path, _, chance) => writePage(path, chance, () => Buffer.alloc(page)),
  },
  {
    name: 'ledger: a page in the place of another',
    suits: isSmall,
    damage: (path, _, chance) =>
      writePage(path, chance, (bytes) => pageOf(bytes, chance.whole(bytes.length / page))),
  },
  {
    name: 'ledger: a page as it was earlier',
    suits: isSmall,
    damage(path, { older }, chance) {
      const earlier = readFileSync(older);
      writePage(path, chance, (_, nth) =>
        (nth + 1) * page <= earlier.length ? pageOf(earlier, nth) : Buffer.alloc(page),
      );
    },
  },
  {
    name: 'ledger: cut off',
    suits: always,
    damage: (path, _, chance) => truncateSync(path, chance.whole(statSync(path).size)),
  },
  {
    name: 'ledger: an older file beside its log',
    suits: hasLog,
    damage: (path, { older }) => bring(older, path, ['']),
  },
  {
    name: 'ledger: an older file, no log',
    suits: always,
    damage: (path, { older }) => bring(older, path, [''], sides),
  },
  {
    name: 'ledger and log: older ones',
    suits: always,
    damage: (path, { older }) => bring(older, path, ['', '-wal'], sides),
  },
  {
    name: 'ledger: copied alone',
    suits: hasLog,
    damage: (path) => ['-wal', '-shm', '.id'].map((side) => rmSync(path + side)),
  },
  {
    name: 'a record deleted',
    suits: isSmall,
    damage: (path, _, chance) => sql(path, `DELETE FROM records WHERE id = ${1 + chance.whole(60)}`),
  },
  {
    name: 'an open record deleted',
    suits: always,
    damage: (path, _, chance) => sql(path, `DELETE FROM records WHERE id = ${20 * (1 + chance.whole(5))}`),
  },
  {
    name: 'two keys exchanged',
    suits: always,
    damage: (path, _, chance) => exchange(path, 1 + chance.whole(30), 31 + chance.whole(30)),
  },
  {
    name: 'a table dropped',
    suits: always,
    damage: (path, _, chance) =>
      sql(path, `DROP TABLE ${chance.pick(['records', 'scopes', 'meta', 'events'])}`),
  },
  { name: 'id: a bit flipped', suits: always, damage: (path, _, chance) => flip(`${path}.id`, chance) },
  { name: 'id: deleted', suits: always, damage: (path) => rmSync(`${path}.id`) },
];

function times(count: number, run: () => void): void {
  for (let nth = 0; nth < count; nth += 1) run();
}

/** How much of the log is in use: behind it lie frames of an earlier use. */
function liveLog(path: string): number {
  const log = readFileSync(`${path}-wal`);
  const salts = log.subarray(16, 24);
  let end = 32;
  while (end + frame <= log.length && log.subarray(end + 8, end + 16).equals(salts)) end += frame;
  return end;
}

function flip(file: string, chance: Chance, until = statSync(file).size): void {
  const bytes = readFileSync(file);
  const at = chance.whole(until);
  bytes[at] = (bytes[at] as number) ^ (1 << chance.whole(8));
  writeFileSync(file, bytes);
}

function junk(file: string, chance: Chance, until = statSync(file).size): void {
  const bytes = readFileSync(file);
  const from = 512 * chance.whole(Math.floor(until / 512));
  for (let at = from; at < Math.min(from + 512, until); at += 1) bytes[at] = chance.whole(256);
  writeFileSync(file, bytes);
}

function pageOf(bytes: Buffer, nth: number): Buffer {
  return Buffer.from(bytes.subarray(nth * page, (nth + 1) * page));
}

function writePage(path: string, chance: Chance, content: (bytes: Buffer, nth: number) => Buffer): void {
  const bytes = readFileSync(path);
  const nth = chance.whole(bytes.length / page);
  content(bytes, nth).copy(bytes, nth * page);
  writeFileSync(path, bytes);
}

/** `gone`: what does not stay. */
function bring(older: string, path: string, which: readonly string[], gone: readonly string[] = which): void {
  for (const side of gone) rmSync(path + side, { force: true });
  for (const side of which)
    if (existsSync(older + side)) writeFileSync(path + side, readFileSync(older + side), { mode: 0o600 });
}

/** By a program that writes into the file. */
function sql(path: string, statement: string): void {
  const database = new DatabaseSync(path);
  database.exec(statement);
  database.close();
}

function exchange(path: string, one: number, other: number): void {
  sql(
    path,
    `CREATE TEMP TABLE names AS SELECT id, scope, key, key_sum FROM records WHERE id IN (${one}, ${other});
     UPDATE records SET key_sum = key_sum + 100000 WHERE id IN (${one}, ${other});
     UPDATE records SET (scope, key, key_sum) = (SELECT scope, key, key_sum FROM names WHERE names.id <> records.id)
     WHERE id IN (${one}, ${other})`,
  );
}
