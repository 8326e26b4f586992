import { describe, expect, test } from 'vitest';
import { createCsvReader } from './csv.ts';
import { linesOf } from './input.ts';

/** Cut into pieces of every size, so that no state is lost between two of them. The names are the first row. */
async function read(text: string, size = text.length || 1, most = 1_000): Promise<unknown[]> {
  async function* pieces() {
    for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
  }
  const reader = createCsvReader(most);
  const rows = [];
  for await (const batch of linesOf(pieces(), most)) for (const line of batch) rows.push(reader.take(line));
  const told = [...rows, reader.end()]
    .filter((row) => row !== undefined)
    .map((row) =>
      'values' in row ? [row.line, ...Object.values(row.values)] : `line ${row.line} ${row.problem}`,
    );
  return reader.names === undefined ? told : [[1, ...reader.names], ...told];
}

describe('what is read', () => {
  test.each([
    [
      'lines that end with LF',
      'a,b\n1,2\n',
      [
        [1, 'a', 'b'],
        [2, '1', '2'],
      ],
    ],
    [
      'lines that end with CRLF',
      'a,b\r\n1,2\r\n',
      [
        [1, 'a', 'b'],
        [2, '1', '2'],
      ],
    ],
    [
      'a last line without an end',
      'a,b\n1,2',
      [
        [1, 'a', 'b'],
        [2, '1', '2'],
      ],
    ],
    [
      'semicolons',
      'a;b\n1,5;2',
      [
        [1, 'a', 'b'],
        [2, '1,5', '2'],
      ],
    ],
    [
      'tabs',
      'a\tb\n1\t2',
      [
        [1, 'a', 'b'],
        [2, '1', '2'],
      ],
    ],
    [
      'one column',
      'a\n1\n',
      [
        [1, 'a'],
        [2, '1'],
      ],
    ],
    [
      'empty fields',
      'a,b,c\n,,\n',
      [
        [1, 'a', 'b', 'c'],
        [2, '', '', ''],
      ],
    ],
    [
      'quoted separators and quotes',
      'a,b\n"x,y","say ""hi"""\n',
      [
        [1, 'a', 'b'],
        [2, 'x,y', 'say "hi"'],
      ],
    ],
    [
      'line ends inside quotes, and the lines after them counted right',
      'a,b\n"x\r\ny",1\n2,3\n',
      [
        [1, 'a', 'b'],
        [2, 'x\r\ny', '1'],
        [4, '2', '3'],
      ],
    ],
    [
      'a separator inside a quoted name',
      '"a;b;c",d\n1,2\n',
      [
        [1, 'a;b;c', 'd'],
        [2, '1', '2'],
      ],
    ],
    [
      'a first line whose names go over several lines',
      '"a\n(EUR)";b;"c ""d"""\n1,5;2;3',
      [
        [1, 'a\n(EUR)', 'b', 'c "d"'],
        [3, '1,5', '2', '3'],
      ],
    ],
    [
      'quoted fields before CRLF',
      '"a","b"\r\n"1","2"\r\n',
      [
        [1, 'a', 'b'],
        [2, '1', '2'],
      ],
    ],
    [
      'empty lines, which are left out',
      'a,b\n\n1,2\n\n',
      [
        [1, 'a', 'b'],
        [3, '1', '2'],
      ],
    ],
    [
      'spaces, which belong to their fields',
      'a,b\n 1 ,2\n',
      [
        [1, 'a', 'b'],
        [2, ' 1 ', '2'],
      ],
    ],
    [
      'characters outside the first plane',
      'a,b\n😀,"😀"\n',
      [
        [1, 'a', 'b'],
        [2, '😀', '😀'],
      ],
    ],
  ])('%s', async (_, text, rows) => {
    expect(await read(text)).toEqual(rows);
    expect(await read(text, 1)).toEqual(rows);
    expect(await read(text, 3)).toEqual(rows);
  });
});

describe('what is refused, with its line', () => {
  test.each([
    ['text after a closing quote', 'a,b\n1,2\n"x"y,3\n', 'line 3 has text after a closing quote'],
    ['a quote in an open field', 'a,b\n1,x"y\n', 'line 2 has a quote inside a field that is not quoted'],
    ['a quote that is never closed', 'a,b\n1,2\n3,"x\ny\nz', 'line 3 opens a quote that is never closed'],
    ['a line without end', `a,b\n1,${'x'.repeat(2_000)}`, 'line 2 is longer than 1000 characters'],
    ['a row without end', `a,b\n1,"${'x\n'.repeat(600)}`, 'line 2 is longer than 1000 characters'],
    ['a first line without end', 'x'.repeat(2_000), 'line 1 is longer than 1000 characters'],
    ['too few fields', 'a,b\n1\n', 'line 2 has 1 fields, and the first line names 2'],
  ])('%s', async (_, text, problem) => {
    expect(await read(text)).toContain(problem);
    expect(await read(text, 1)).toContain(problem);
  });

  test('and the rows after it count', async () => {
    expect(await read('a,b\n1\n2,x"y\n"3"z,4\n5,6')).toEqual([
      [1, 'a', 'b'],
      'line 2 has 1 fields, and the first line names 2',
      'line 3 has a quote inside a field that is not quoted',
      'line 4 has text after a closing quote',
      [5, '5', '6'],
    ]);
  });
});

test('a column called __proto__ is a column', async () => {
  expect(await read('__proto__,b\n1,2')).toEqual([
    [1, '__proto__', 'b'],
    [2, '1', '2'],
  ]);
});

test('a first row whose quote is never closed is read once, however many lines it has', async () => {
  const reader = createCsvReader(64 * 1_048_576);
  reader.take({ number: 1, text: 'a,"b' });
  // Read anew with each line, it would take hours.
  for (let number = 2; number < 1_000_000; number += 1) reader.take({ number, text: 'x' });
  expect(reader.end()).toMatchObject({ problem: 'opens a quote that is never closed' });
});
