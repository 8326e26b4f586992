// docs/reference/verifiers.md has a row for every verifier, and for no other.

import { expect, test } from 'vitest';
import * as door from '../../src/providers/verifiers/index.ts';
import { readPage } from '../docs/page.ts';
import { cases } from './cases.ts';

const { text } = readPage('docs/reference/verifiers.md');
const rows = [...text.matchAll(/^\| `(verify\w+)\(.*\| (\w+)\*? \| [^|]+ \|$/gm)];

test('every verifier has its row, and every row is a verifier', () => {
  expect(rows.map(([, name]) => name).sort()).toEqual(Object.keys(door).sort());
});

test('the lag of a row is the one that the verifier waits for', () => {
  const units: Record<string, number> = { '': 0, m: 60_000 };
  const stated = new Map(
    rows.map(([, name, lag]) => [
      name,
      Number.parseInt(lag as string, 10) * (units[(lag as string).replace(/\d+/, '')] ?? 0),
    ]),
  );
  for (const { name, lagMs } of cases) {
    if (name === 'Slack reply in a thread') continue;
    const verifier = `verify${name.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase())}`;
    expect([verifier, stated.get(verifier)]).toEqual([verifier, lagMs]);
  }
});
