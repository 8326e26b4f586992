import { expect, test } from 'vitest';
import { createEventReader } from './events.ts';

test.each(['\n', '\r\n', '\r'])(
  'events are found wherever the stream is cut, with lines that end in %j',
  (end) => {
    const events = ['id: 1\ndata: a\n\n', 'data: é\ndata: b\n\n'].map((each) => each.replaceAll('\n', end));
    const stream = Buffer.from(events.join(''));
    for (let size = 1; size <= stream.length; size += 1) {
      const seen: string[] = [];
      const reader = createEventReader((event) => seen.push(event.toString()));
      for (let at = 0; at < stream.length; at += size) reader.read(stream.subarray(at, at + size));
      expect(seen).toEqual(events);
    }
  },
);

test.each<[string, object]>([
  [': comment\ndata\n\n', {}],
  ['data:\n\n', { data: '' }],
  ['data:\ndata:\n\n', { data: '\n' }],
  ['data: a\r\ndata:  b\rdata:c\n\n', { data: 'a\n b\nc' }],
  [
    'id: 1\nid:é 2\nretry: 20\nevent: other\ndata: {}\n\n',
    { data: '{}', id: 'é 2', retryMs: 20, event: 'other' },
  ],
  ['retry: 1234567\nidx: 1\ndata : x\nid:\n\n', { id: '' }],
])('%j says what it says', (text, fields) => {
  const seen: object[] = [];
  createEventReader((_, each) => seen.push(each)).read(Buffer.from(text));
  const nothing = { data: undefined, id: undefined, retryMs: undefined, event: undefined };
  expect(seen).toEqual([{ ...nothing, ...fields }]);
});

test.each(['a\n', 'data:\n', 'id:x\r\n'])(
  'a long event of lines %j takes no more room than its length',
  (line) => {
    const bytes = Buffer.from(`${line.repeat((24 * 1024 * 1024) / line.length)}\n`);
    let seen = 0;
    const before = process.memoryUsage().heapUsed;
    createEventReader(() => {
      seen = process.memoryUsage().heapUsed - before;
    }).read(bytes);
    expect(seen).not.toBe(0);
    expect(seen).toBeLessThan(2 * bytes.length);
  },
);

test('a byte order mark at the start is not part of the first event, however it is split; a later one is', () => {
  const stream = Buffer.from('\ufeffdata: a\n\n\ufeffdata: b\n\n');
  for (let size = 1; size <= stream.length; size += 1) {
    const seen: unknown[] = [];
    const reader = createEventReader((event, { data }) => seen.push([event.toString(), data]));
    for (let at = 0; at < stream.length; at += size) reader.read(stream.subarray(at, at + size));
    expect(seen).toEqual([
      ['data: a\n\n', 'a'],
      ['\ufeffdata: b\n\n', undefined],
    ]);
  }
});
