// Each example of a framework runs offline, and tells what it should.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

test.each(['ai-sdk'])('examples/%s.ts: the whole run is made three times, one effect lands', (name) => {
  const { stdout, stderr } = spawnSync(process.execPath, [join(root, `examples/${name}.ts`)], {
    encoding: 'utf8',
  });
  expect(stdout, stderr).toMatch(/run 1: .* refunds at the bank: 1\n/);
  expect(stdout).toMatch(/run 3: .* refunds at the bank: 1\n/);
  expect(stdout).toMatch(/the model was told: Already done; nothing was sent again\./);
});
