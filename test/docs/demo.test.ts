// The story that `npm run demo` tells, from the build, as a stranger would see it.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { root } from './page.ts';

test('npm run demo tells of three refunds, one doubt and one verdict', () => {
  const [command, file] = manifest.scripts.demo.split(' ');
  expect(command).toBe('node');
  const story = execFileSync(process.execPath, [join(root, file!)], { encoding: 'utf8' });
  expect(story.match(/ executed$/gm)).toHaveLength(2);
  expect(story.match(/ replayed: nothing was sent again/gm)).toHaveLength(5);
  expect(story).toContain('other wording of reason');
  expect(story.match(/ IN_DOUBT: refund may have landed/g)).toHaveLength(1);
  expect(
    story
      .split('What the bank saw')[1]
      ?.trim()
      .split(/\s*\n\s*/),
  ).toEqual(['p-1 20', 'p-3 10', 'p-2 30']);
});
