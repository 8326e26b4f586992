import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { limits } from '../../core/limits.ts';
import { readJson } from './ids.ts';
import { type Decoding, decoded, linesOf, smallText, textOf } from './input.ts';

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

test('an endless line is not kept in memory, and keeps its number', async () => {
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

test('input that is not text is refused', async () => {
  await expect(read([Buffer.from([0x1f, 0x8b, 8])])).rejects.toThrow('the input is compressed');
  await expect(read([Buffer.from('a\0b')])).rejects.toThrow('the input is not UTF-8 text');
  await expect(read(['key ', Buffer.from([0xe9])])).rejects.toThrow('the input is not UTF-8 text');
  expect(await read(['log ', Buffer.from([0xe9])], 100, 'lenient')).toEqual([[1, 'log \uFFFD']]);
});

/** Other limits for one test: nobody writes gigabytes. */
const usual = { ...limits };
afterEach(() => void Object.assign(limits, usual));

test('no file is read beyond its limit', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'semel-input-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'input');
  const write = (bytes: number) => writeFileSync(path, JSON.stringify('x'.repeat(bytes - 2)));
  const readAll = async () => {
    for await (const text of textOf('audit', path)) void text;
  };
  Object.assign(limits, { inputBytes: 100, smallInputBytes: 10 });
  write(100);
  await readAll();
  write(101);
  await expect(readAll()).rejects.toThrow('the input has more than 100 bytes');
  write(10);
  expect(readJson('once', path)).toBe('x'.repeat(8));
  write(11);
  expect(() => readJson('once', path)).toThrow('has more than 10 bytes');
  expect(() => smallText('mcp', path)).toThrow('has more than 10 bytes');
});
