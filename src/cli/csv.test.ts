import { describe, expect, test } from 'vitest';
import { csvRows } from './csv.ts';

/** Cut into pieces of every size, so that no state is lost between two of them. */
async function read(text: string, size = text.length || 1, most = 1_000): Promise<unknown[]> {
  async function* pieces() {
    for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
  }
  const rows: unknown[] = [];
  for await (const { line, fields } of csvRows(pieces(), most)) rows.push([line, ...fields]);
  return rows;
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
    ['a first line without end', 'x'.repeat(2_000), 'line 1 is longer than 1000 characters'],
  ])('%s', async (_, text, message) => {
    await expect(read(text)).rejects.toThrow(message);
    await expect(read(text, 1)).rejects.toThrow(message);
    await expect(read(text)).rejects.toThrow('Nothing was settled.');
  });
});
