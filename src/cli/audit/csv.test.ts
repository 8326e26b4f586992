import { expect, test } from 'vitest';
import { type CsvRow, cellsOf, createCsvReader } from './csv.ts';

function rowsOf(text: string): CsvRow[] {
  const reader = createCsvReader();
  const rows = text.split('\n').map((line, n) => reader.take({ number: n + 1, text: line }));
  return [...rows, reader.end()].filter((row) => row !== undefined);
}

test.each([
  ['a,b,c', ['a', 'b', 'c']],
  ['', ['']],
  [',', ['', '']],
  ['"a,b",c', ['a,b', 'c']],
  ['"say ""no""",x', ['say "no"', 'x']],
  ['"",""', ['', '']],
  ['"two\nlines",x', ['two\nlines', 'x']],
  ['a,"b"', ['a', 'b']],
  ['a,', ['a', '']],
])('%j is %j', (text, cells) => {
  expect(cellsOf(text)).toEqual(cells);
});

test.each(['a"b,c', '"a"b,c', '"a', 'a,b"'])('%j is no CSV', (text) => {
  expect(cellsOf(text)).toBeUndefined();
});

test('a row is named by the line on which it begins', () => {
  expect(rowsOf('id,text\n1,"a\nb"\n2,c')).toEqual([
    { line: 2, fields: { id: '1', text: 'a\nb' } },
    { line: 4, fields: { id: '2', text: 'c' } },
  ]);
});

test('a row that does not fit the header does not shift the others', () => {
  expect(rowsOf('a,b\n1\n2,3')).toEqual([
    { line: 2, problem: 'it has 1 fields, the header has 2' },
    { line: 3, fields: { a: '2', b: '3' } },
  ]);
});

test('a quote that is never closed is told, and not waited for without end', () => {
  expect(rowsOf('a,b\n1,"x\n2,3')).toEqual([{ line: 2, problem: 'a quote that opens here does not close' }]);
  const long = Array.from({ length: 2_000 }, () => 'x'.repeat(1_000)).join('\n');
  expect(rowsOf(`a,b\n1,"${long}`)[0]).toMatchObject({ line: 2, problem: expect.any(String) });
});

test('a column called __proto__ is a column', () => {
  const [row] = rowsOf('__proto__,b\n1,2');
  expect(row !== undefined && 'fields' in row && Object.keys(row.fields)).toEqual(['__proto__', 'b']);
});
