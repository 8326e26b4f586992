// `semel store` on a SQLite ledger that was damaged, lost, backed up or restored.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { place } from './place.ts';

test('accept-loss opens a SQLite ledger that lacks its log, and check shows who accepted it', async () => {
  const { semel, path } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'true');
  const id = path('ledger.db.id');
  writeFileSync(id, readFileSync(id, 'utf8').replace(/\d{16}/, '0000000000000009'));
  const refused = await semel('once', 'mail', '--key', 'b', '--', 'touch', 'twice');
  expect(refused.stderr).toMatch(/lacks its last \d writes.* semel store accept-loss --store sqlite:/s);
  const asked = await semel('store', 'accept-loss');
  expect(asked).toMatchObject({ code: 64, stderr: expect.stringMatching(/lacks its last \d writes/) });
  expect(await semel('store', 'accept-loss', '--yes', '-m', 'a new disk')).toMatchObject({ code: 0 });
  expect((await semel('store', 'check')).stdout).toMatch(/^loss +accepted 20\d\d-.*Z by \S+: a new disk$/m);
  expect(await semel('once', 'mail', '--key', 'b', '--', 'echo', 'sent')).toMatchObject({ stdout: 'sent\n' });
});

test('a backup restores what it knows, and stays closed until somebody says what was done since', async () => {
  const { semel, path, folder, json } = place();
  const once = (key: string, ...words: string[]) => semel('once', 'mail', '--key', key, '--', ...words);
  await once('a', 'echo', 'sent a');
  expect(await semel('store', 'backup', 'copy.db')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/Made .*copy\.db: \d+ records?/),
  });
  expect((await semel('store', 'backup', 'copy.db')).stderr).toMatch(/already exists\. Nothing was changed/);
  await once('b', 'echo', 'sent b');

  const asked = await semel('store', 'restore', 'copy.db');
  expect(asked).toMatchObject({ code: 64 });
  expect(asked.stderr).toMatch(
    /copy\.db was made at 20\d\d-.* has had \d+ writes since then: .* would be done again/,
  );
  expect(readdirSync(folder).filter((name) => /ledger\.db\.[0-9a-f]{16}/.test(name))).toEqual([]);

  const restored = await semel('store', 'restore', 'copy.db', '--yes');
  expect(restored.stdout).toMatch(/Restored .*kept as \S+ledger\.db\.replaced-.*stays closed.*accept-loss/s);
  expect((await once('b', 'touch', 'twice')).stderr).toMatch(/lacks its last \d+ writes/);
  expect(existsSync(path('twice'))).toBe(false);

  await semel('store', 'accept-loss', '--yes');
  expect((await once('a', 'touch', 'twice')).stdout).toBe('sent a\n');
  expect(existsSync(path('twice'))).toBe(false);
  expect(await json('store', 'check')).toMatchObject({ damage: [] });
});

const endless = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS key FROM n';

test.each([
  ['a view of endless rows', `ALTER TABLE records RENAME TO hidden; CREATE VIEW records AS ${endless}`],
  ['a trigger', 'CREATE TRIGGER late AFTER INSERT ON records BEGIN DELETE FROM records; END'],
])('a backup with %s is refused, and the ledger stays', async (_what, sql) => {
  const { semel, path, folder } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'echo', 'sent a');
  await semel('store', 'backup', 'copy.db');
  const copy = new DatabaseSync(path('copy.db'));
  copy.exec(sql);
  copy.close();
  const refused = await semel('store', 'restore', 'copy.db', '--yes');
  expect(refused).toMatchObject({ code: 69, stderr: expect.stringMatching(/copy\.db has .* not semel's/) });
  expect(readdirSync(folder).filter((name) => /replaced|\.[0-9a-f]{16}/.test(name))).toEqual([]);
  expect((await semel('once', 'mail', '--key', 'a', '--', 'touch', 'twice')).stdout).toBe('sent a\n');
});

test('a journal of the ledger that is replaced goes with it, and is not played back into the restored one', async () => {
  const { semel, path, folder } = place();
  const once = (key: string, ...words: string[]) => semel('once', 'mail', '--key', key, '--', ...words);
  await once('a', 'echo', 'sent a');
  await semel('store', 'backup', 'copy.db');
  writeFileSync(path('ledger.db-journal'), 'of the one that was damaged');
  await semel('store', 'restore', 'copy.db', '--yes');
  expect(readdirSync(folder).filter((name) => name.endsWith('-journal'))).toEqual([
    expect.stringMatching(/^ledger\.db\.replaced-.*-journal$/),
  ]);
  expect((await once('a', 'touch', 'twice')).stdout).toBe('sent a\n');
});

test('a restored ledger opens at once if nothing was written or done since', async () => {
  const { semel } = place();
  const once = (key: string, ...words: string[]) => semel('once', 'mail', '--key', key, '--', ...words);
  await once('a', 'echo', 'sent a');
  await semel('store', 'backup', 'copy.db');
  expect(await semel('store', 'restore', 'copy.db', '--yes')).toMatchObject({
    code: 0,
    stdout: expect.not.stringMatching(/stays closed/),
  });
  expect((await once('a', 'touch', 'twice')).stdout).toBe('sent a\n');
  await once('b', 'echo', 'sent b');
  expect(await semel('store', 'restore', 'copy.db', '--yes', '--nothing-since')).toMatchObject({ code: 0 });
  expect((await once('a', 'touch', 'twice')).stdout).toBe('sent a\n');
});

test('a backup restores to a machine that has no ledger, and doctor finds nothing wrong with how it is written', async () => {
  const { semel, path } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'echo', 'sent a');
  await semel('store', 'backup', 'copy.db');
  const there = ['--store', `sqlite:${path('new/place/ledger.db')}`];
  const restored = await semel('store', 'restore', 'copy.db', '--yes', '--nothing-since', ...there);
  expect(restored).toMatchObject({ code: 0, stderr: '' });
  expect((await semel('doctor', ...there)).stdout).not.toMatch(/DURABILITY/);
  const again = await semel('once', 'mail', '--key', 'a', ...there, '--', 'touch', 'twice');
  expect(again.stdout).toBe('sent a\n');
});

test('doctor finds nothing wrong with a restored ledger that nobody has opened yet', async () => {
  const { semel } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'true');
  await semel('store', 'backup', 'copy.db');
  await semel('store', 'restore', 'copy.db', '--yes');
  expect((await semel('doctor')).stdout).not.toMatch(/DURABILITY/);
});
