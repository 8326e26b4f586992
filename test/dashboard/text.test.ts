// How the dashboard words what a record holds.

import { expect, test } from 'vitest';
import { shownOwner } from '../../dashboard/text.ts';

test.each([
  ['web1:42~584763354669', 'web1:42'],
  ['web1:42~584763354669.alone', 'web1:42'],
  ['web1:42#9f3a9f3a9f3a9f3a9f3a', 'web1:42'],
  ['web1:42', 'web1:42'],
  ['worker~7', 'worker~7'],
])('%s is shown as %s: marks are for programs', (owner, shown) => {
  expect(shownOwner(owner)).toBe(shown);
});
