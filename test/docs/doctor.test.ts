// docs/operate/doctor.md explains every finding, and nothing that is none.

import { expect, test } from 'vitest';
import { findingIds } from '../../src/cli/commands/doctor/checks.ts';
import { headings, readPage, sections } from './page.ts';

const page = readPage('docs/operate/doctor.md');

test('every finding has a heading, in the order of the report, and every heading is a finding', () => {
  expect(headings(page, 2)).toEqual(findingIds);
});

test.each(findingIds)('%s tells what it means, and what to do', (id) => {
  const paragraphs = sections(page, [id]).trim().split(/\n\n/);
  expect(paragraphs.map((text) => text.split(':', 1)[0])).toEqual(['Means', 'Do']);
});
