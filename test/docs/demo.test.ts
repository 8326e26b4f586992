// The story that `npm run demo` tells.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { root } from './page.ts';

test('npm run demo tells of three refunds, one doubt and one verdict', () => {
  const [command, file] = manifest.scripts.demo.split(' ');
  expect(command).toBe('node');
  const preload = pathToFileURL(join(import.meta.dirname, 'semel-from-source.ts'));
  const story = execFileSync(process.execPath, [join(root, file!)], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: `--import=${preload}` },
  });
  expect(story.match(/ executed$/gm)).toHaveLength(2);
  expect(story.match(/ replayed: nothing was sent again/gm)).toHaveLength(5);
  expect(story).toContain('other wording of reason');
  expect(story.match(/ IN_DOUBT: refund: .* It may have landed/g)).toHaveLength(1);
  const [, bank = ''] = story.split('What the bank saw');
  expect(bank.trim().split(/\s*\n\s*/)).toEqual(['p-1 20', 'p-3 10', 'p-2 30']);
});
