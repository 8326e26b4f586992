import { expect, test } from 'vitest';
import { type Decoding, decoded, linesOf } from './input.ts';

async function read(chunks: readonly (string | Buffer)[], maxLength = 1_000, decoding: Decoding = 'strict') {
  async function* source() {
    for (const chunk of chunks) yield Buffer.from(chunk as string);
  }
  const lines = [];
  for await (const batch of linesOf(decoded('audit', source(), decoding), maxLength)) lines.push(...batch);
  return lines.map(({ number, text }) => [number, text]);
}

test('lines are whole and numbered, however the file comes in pieces', async () => {
  const expected = [
    [1, 'a'],
    [2, ''],
    [3, 'bé'],
    [4, 'c'],
  ];
  expect(await read(['a\n\nbé\nc'])).toEqual(expected);
  expect(await read(['a', '\n', '\nb', Buffer.from([0xc3]), Buffer.from([0xa9]), '\nc'])).toEqual(expected);
  expect(await read(['\uFEFFa\n\nbé', '\nc'])).toEqual(expected);
});

test('an end of line at the end begins no further line', async () => {
  expect(await read(['a\n'])).toEqual([[1, 'a']]);
  expect(await read([])).toEqual([]);
});

test('a line without end is not kept in memory, and keeps its number', async () => {
  const long = Array.from({ length: 10 }, () => 'x'.repeat(10));
  expect(await read(['a\n', ...long, '\nb\n'], 20)).toEqual([
    [1, 'a'],
    [2, undefined],
    [3, 'b'],
  ]);
  expect(await read(['a\n', ...long], 20)).toEqual([
    [1, 'a'],
    [2, undefined],
  ]);
});

test('what is no text is refused', async () => {
  await expect(read([Buffer.from([0x1f, 0x8b, 8])])).rejects.toThrow('it is compressed');
  await expect(read([Buffer.from('a\0b')])).rejects.toThrow('it is no UTF-8 text');
  await expect(read(['key ', Buffer.from([0xe9])])).rejects.toThrow('it is no UTF-8 text');
  expect(await read(['log ', Buffer.from([0xe9])], 100, 'lenient')).toEqual([[1, 'log \uFFFD']]);
});
