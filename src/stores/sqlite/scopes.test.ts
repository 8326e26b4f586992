import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { SqliteLike } from './client.ts';
import { migrations } from './schema.ts';
import { createScopes } from './scopes.ts';

function newDatabase(): DatabaseSync {
  const database = new DatabaseSync(':memory:');
  for (const statement of migrations.flat()) database.exec(statement);
  return database;
}

const many = 12_000;
const nameOf = (nth: number) => `job-${String(nth).padStart(6, '0')}/`;

test('tens of thousands of contracts are added and listed in a time that grows with their number only', () => {
  const database = newDatabase();
  const known = createScopes(database as unknown as SqliteLike);
  for (let nth = 0; nth < many; nth += 1) known.ensureId('default', nameOf(nth));
  // As pages of one record each ask for them.
  const asked = Array.from({ length: many }, (_, nth) => {
    for (const { contract } of known.from('default', nameOf(nth))) return contract;
    return undefined;
  });
  expect(asked).toEqual(asked.map((_, nth) => nameOf(nth)));
  expect([...known.from('default', '')].map(({ contract }) => contract)).toEqual(asked);
  database.close();
});

test.each([
  ['an old one, at the first new name', 0],
  ['a new one, at the next', 1],
])('detects a changed name among many contracts: %s', (_, isLater) => {
  const database = newDatabase();
  const first = createScopes(database as unknown as SqliteLike);
  for (let nth = 0; nth < 500; nth += 1) first.ensureId('default', nameOf(nth));
  const second = createScopes(database as unknown as SqliteLike);
  if (isLater) {
    second.ensureId('default', 'new-1/');
    first.ensureId('default', 'new-2/');
  }
  database.exec(
    `UPDATE scopes SET contract = 'changed/' WHERE contract = '${isLater ? 'new-2/' : nameOf(7)}'`,
  );
  expect(() => second.ensureId('default', 'new-3/')).toThrow(/changed\/ of default is not what was written/);
  database.close();
});
