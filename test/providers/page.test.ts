// The table of docs/reference/providers.md is the registry. To write it: UPDATE_PROVIDERS=1 npx vitest run test/providers/page

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Provider } from 'semel';
import { expect, test } from 'vitest';
import type { ProviderRow } from '../../src/providers/index.ts';
import * as door from '../../src/providers/index.ts';
import { firstNames, readPage } from '../docs/page.ts';

const page = join(import.meta.dirname, '../../docs/reference/providers.md');
const table = /(?<=<!-- rows -->\n\n)[\s\S]*?(?=\n\n<!-- end -->)/;

const importNames = new Map(
  Object.entries(door).flatMap(([name, value]) =>
    typeof value === 'object' && 'name' in value ? [[value.name, name] as const] : [],
  ),
);

function rowOf(row: ProviderRow): string {
  const name = `\`${importNames.get(row.name) ?? 'smtp(domain)'}\``;
  const found = [row.verify, row.note].filter((text) => text !== undefined).join(' ');
  const cells =
    row.key === 'none'
      ? [name, `[${row.covers}](${row.source})`, found]
      : [name, row.covers, placeOf(row), `[${windowOf(row)}](${row.source})`, found];
  return `| ${cells.join(' | ')} |`;
}

function placeOf({ key }: ProviderRow): string {
  if (key === 'none') return '';
  if ('tool' in key) return `run: ${key.tool}`;
  if ('header' in key) return `\`${key.header}\``;
  return 'bodyField' in key ? `body \`${key.bodyField}\`` : `query \`${key.queryField}\``;
}

function windowOf({ window, verified }: ProviderRow): string {
  if (window === undefined) return 'unknown';
  return verified ? String(window) : `${window}?`;
}

test('docs/reference/providers.md has every row as it is', () => {
  const [none = [], some = []] = [true, false].map((isNone) =>
    door.providers.filter(({ key }) => (key === 'none') === isNone).map(rowOf),
  );
  const expected = [
    '| import | what it covers | key | window | how to find what landed |',
    '|---|---|---|---|---|',
    ...some,
    '',
    'These honour no key:',
    '',
    '| import | what it covers | how to find what landed |',
    '|---|---|---|',
    ...none,
  ].join('\n');
  const text = readFileSync(page, 'utf8');
  if (process.env.UPDATE_PROVIDERS)
    writeFileSync(
      page,
      text.replace(table, () => expected),
    );
  expect(table.exec(readFileSync(page, 'utf8'))?.[0]).toBe(expected);
});

/** The compiler sees to it that this list has every field, and no other. */
const fields: Record<keyof Provider, true> = {
  name: true,
  window: true,
  hosts: true,
  header: true,
  bodyField: true,
  queryField: true,
  sentBy: true,
  format: true,
  sdkKey: true,
  replaysErrors: true,
  verified: true,
  classify: true,
};

test('and every field of a provider', () => {
  expect(firstNames(readPage('docs/reference/providers.md'), 'A row of your own').sort()).toEqual(
    Object.keys(fields).sort(),
  );
});
