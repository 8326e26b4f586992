// `semel store` on a SQLite ledger that was damaged, lost, backed up or restored.

import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { place } from './place.ts';

test('accept-loss opens a SQLite ledger that lacks its log, and check shows who accepted it', async () => {
  const { semel, path } = place();
  await semel('once', 'mail', '--key', 'a', '--', 'true');
  const id = path('ledger.db.id');
  writeFileSync(id, readFileSync(id, 'utf8').replace(/\d{16}/, '0000000000000009'));
  const refused = await semel('once', 'mail', '--key', 'b', '--', 'touch', 'twice');
  expect(refused.stderr).toMatch(/lacks the last \d writes .* semel store accept-loss --store "sqlite:/s);
  const asked = await semel('store', 'accept-loss');
  expect(asked).toMatchObject({ code: 64, stderr: expect.stringMatching(/lacks the last \d writes/) });
  expect(await semel('store', 'accept-loss', '--yes', '-m', 'a new disk')).toMatchObject({ code: 0 });
  expect((await semel('store', 'check')).stdout).toMatch(/^loss +accepted 20\d\d-.*Z by \S+: a new disk$/m);
  expect(await semel('once', 'mail', '--key', 'b', '--', 'echo', 'sent')).toMatchObject({ stdout: 'sent\n' });
});
