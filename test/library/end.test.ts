// A program that ends by itself, without `semel.close()`.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { newPath } from '../stores/sqlite-folder.ts';

const source = join(import.meta.dirname, '../../src/index.ts');

test('a program that ends by itself has its replays in the history', async () => {
  const store = `sqlite:${newPath()}`;
  const program = `
    import { createSemel } from '${source}';
    const semel = createSemel({ store: '${store}', namespace: 'shop', ...(process.argv.includes('uncached') && { cache: false }) });
    for (let nth = 1; nth <= 3; nth += 1) await semel.once('mail', { lead: 7 }, () => 'sent');
  `;
  for (const cache of ['cached', 'uncached'])
    execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '--eval', program, cache]);

  await using semel = createSemel({ store, namespace: 'shop' });
  const { items } = await semel.records.list();
  const history = await semel.records.history(items[0]!.key);
  const times = history.map(({ type, detail }) => [type, detail.times]);
  expect(times).toEqual([
    ['replayed', 2],
    ['replayed', 3],
  ]);
});
