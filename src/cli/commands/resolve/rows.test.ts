import { describe, expect, test } from 'vitest';
import { rowsOf } from './rows.ts';

async function read(text: string, size = text.length || 1): Promise<unknown[]> {
  async function* pieces() {
    for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
  }
  const rows: unknown[] = [];
  for await (const { line, values } of rowsOf(pieces())) rows.push([line, values]);
  return rows;
}

describe('the first character decides the kind of file', () => {
  test.each([
    [
      'JSON lines',
      '{"id":1}\n\n{"id":2,"of":{"a":[1]}}',
      [
        [1, { id: 1 }],
        [3, { id: 2, of: { a: [1] } }],
      ],
    ],
    [
      'a JSON array',
      ' [\n{"id":1},\n{"id":"a]},{\\"","of":[[2],{}]}\n]\n',
      [
        [2, { id: 1 }],
        [3, { id: 'a]},{"', of: [[2], {}] }],
      ],
    ],
    ['an empty array', '[]', []],
    ['CSV', 'id,name\n1,ann\n', [[2, { id: '1', name: 'ann' }]]],
    ['CSV whose names have spaces around them', 'id , name\n1,ann\n', [[2, { id: '1', name: 'ann' }]]],
    [
      'CSV with a column that is called like a part of every object',
      '__proto__,id\nx,1\n',
      [
        [
          2,
          Object.fromEntries([
            ['__proto__', 'x'],
            ['id', '1'],
          ]),
        ],
      ],
    ],
  ])('%s', async (_, text, rows) => {
    expect(await read(text)).toEqual(rows);
    expect(await read(text, 1)).toEqual(rows);
  });
});

test.each([
  ['a line that is not JSON', '{"id":1}\n{"id":\n', 'line 2 is not JSON'],
  [
    'an object over several lines',
    '{\n"data":[]}',
    'line 1 is not JSON. Nothing was settled. Each line must be one JSON object',
  ],
  ['a line that is not an object', '{"id":1}\n7\n', 'line 2 is not a JSON object'],
  ['an element that is not an object', '[{"id":1},\n[2]]', 'line 2 is not a JSON object'],
  ['an element that is not JSON', '[{"id":1},\n{"id":x}]', 'line 2 is not JSON'],
  ['two commas', '[{"id":1},\n,{"id":2}]', 'line 2 has a comma without a value'],
  ['a comma at the end', '[{"id":1},\n]', 'line 2 has a comma without a value'],
  ['an array that is cut off', '[{"id":1},\n{"id":2}', 'line 2 is the last, and the array has no end'],
  ['text after the array', '[{"id":1}]\n{"id":2}', 'line 2 has text after the end of the array'],
  ['brackets that do not fit', '[{"id":1}}\n]', 'line 1 has a closing bracket too many'],
  ['a CSV line with too few fields', 'a,b\n1,2\n3\n', 'line 3 has 1 fields, and the first line names 2'],
  ['a CSV line with too many fields', 'a,b\n1,2,3\n', 'line 2 has 3 fields, and the first line names 2'],
  ['two CSV columns of one name', 'a,b,a\n1,2,3\n', 'line 1 names the column "a" twice'],
  ['an empty file', '', 'the file is empty'],
])('%s is refused', async (_, text, message) => {
  await expect(read(text)).rejects.toThrow(message);
  await expect(read(text, 1)).rejects.toThrow(message);
});

test('a row of many columns costs no more than its length', async () => {
  const costOf = async (rows: number, columns: number) => {
    const names = Array.from({ length: columns }, (_, nth) => `column${nth}`).join(',');
    const text = `${names}\n${`${','.repeat(columns - 1)}\n`.repeat(rows)}`;
    const before = process.cpuUsage();
    expect(await read(text)).toHaveLength(rows);
    return process.cpuUsage(before).user;
  };
  await costOf(400, 200);
  expect(await costOf(400, 2_000)).toBeLessThan(5 * (await costOf(4_000, 200)));
});
