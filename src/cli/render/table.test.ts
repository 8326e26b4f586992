import { expect, test } from 'vitest';
import { type Column, table } from './table.ts';
import { displayWidth } from './wrap.ts';

const head: readonly (string | Column)[] = [
  'id',
  { name: 'namespace', min: 9, leaveOut: 4 },
  { name: 'contract', min: 16 },
  'status',
  { name: 'attempts', leaveOut: 1 },
  { name: 'age', leaveOut: 3 },
  { name: 'args', min: 20, leaveOut: 2 },
];
const rows = [
  [
    'pg8036jmqg',
    'billing-production-eu',
    'customer.notifications.email.welcome',
    { text: 'succeeded', style: 'green' as const },
    '1',
    '5m21s ago',
    '{"lead":"株式会社サンプル東京本社営業部"}',
  ],
  [
    'n1nsrag1gs',
    'shop',
    'refund',
    'in doubt, expired',
    '12',
    'now',
    '{"payment":"p-17","amount":"49.00 EUR"}',
  ],
];
const sizes = [20, 40, 60, 80, 100, 120, 160];

test.each(sizes)('no row is wider than %i columns, and its id is whole', (width) => {
  const lines = table(head, rows, width);
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
  expect(lines.map((line) => line.slice(0, 10).trimEnd())).toEqual(['id', 'pg8036jmqg', 'n1nsrag1gs']);
});

test('of a column whose end says more, the start is cut', () => {
  const columns: readonly Column[] = [{ name: 'contract', min: 14, keep: 'end' }, { name: 'status' }];
  const lines = table(columns, [['mcp-server-memory.add_observations', 'succeeded']], 27);
  expect(lines[1]).toBe('…dd_observations  succeeded');
  expect(table(columns, [['日本語の道具.作る', 'x']], 18)[1]).toContain('.作る');
});

test('the least important columns are left out first', () => {
  const columns = (width: number) => table(head, rows, width)[0]?.split(/ {2,}/);
  expect(columns(120)).toEqual(['id', 'namespace', 'contract', 'status', 'attempts', 'age', 'args']);
  expect(columns(100)).toEqual(['id', 'namespace', 'contract', 'status', 'age', 'args']);
  expect(columns(80)).toEqual(['id', 'namespace', 'contract', 'status', 'age']);
  expect(columns(60)).toEqual(['id', 'namespace', 'contract', 'status']);
  expect(columns(50)).toEqual(['id', 'contract', 'status']);
});

test('columns stay aligned under wide characters', () => {
  const lines = table(
    ['name', 'n'],
    [
      ['日本', '1'],
      ['abcd', '2'],
      ['é', '3'],
    ],
    80,
  );
  expect(lines).toEqual(['name  n', '日本  1', 'abcd  2', 'é     3']);
});

test('without a terminal nothing is cut', () => {
  const lines = table(head, rows, undefined);
  expect(lines[1]).toContain('billing-production-eu  customer.notifications.email.welcome  succeeded ');
  expect(lines[1]).toMatch(/営業部"\}$/);
});

test('unless a column says that it may be cut, the last one is', () => {
  expect(table(['a', 'b'], [['x'.repeat(15), 'y'.repeat(15)]], 20)).toEqual([
    'a                b',
    `${'x'.repeat(15)}  yy…`,
  ]);
});
