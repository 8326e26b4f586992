// The demo is honest: it counts what landed, and ends with what it counted.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { place } from './place.ts';

/** Whatever it leaves behind would lie in its home. */
function homeOfDemo() {
  const home = place({ SEMEL_STORE: '' });
  return { folder: home.folder, ...home.with({ env: { TMPDIR: home.folder } }) };
}

test('each of the three incidents lands more than once bare, and once with semel', async () => {
  const home = homeOfDemo();
  const { code, stdout, stderr } = await home.semel('demo', '--json');
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toMatchObject({
    kept: true,
    incidents: [
      { incident: 1, bare: { landed: 3 }, semel: { landed: 1, inDoubt: 0 }, kept: true },
      { incident: 2, bare: { landed: 2 }, semel: { landed: 1, inDoubt: 1 }, kept: true },
      { incident: 3, bare: { landed: 2 }, semel: { landed: 1, inDoubt: 0 }, kept: true },
    ],
  });
  expect(code).toBe(0);
  expect(readdirSync(home.folder)).toEqual([]);
});

test('without a terminal, one incident prints plain lines', async () => {
  const home = homeOfDemo();
  const { code, stdout } = await home.semel('demo', '--only', '2');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^2\. A job killed after its effect$/m);
  expect(stdout).toMatch(/^ {4}IN_DOUBT: may have landed\. Nothing was sent again\.$/m);
  expect(stdout).toMatch(/types: semel resolve \S+ landed$/m);
  expect(stdout).toMatch(
    /^2\. A job killed after its effect +2 invoices +1 invoice, in doubt until decided$/m,
  );
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});

test('a ledger that is named is not touched: the demo says that it has its own', async () => {
  const home = homeOfDemo();
  const { code, stderr } = await home.semel('demo', '--store', 'sqlite:mine.db');
  expect(stderr).toMatch(/uses its own ledger/);
  expect(code).toBe(64);
  expect(readdirSync(home.folder)).toEqual([]);
});

test('the README shows the table that it prints', async () => {
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
  const [, shown = ''] = /```text\n(incident [\s\S]*?)```/.exec(readme) ?? [];
  expect(shown).not.toBe('');
  expect((await homeOfDemo().semel('demo')).stdout).toContain(shown);
});
