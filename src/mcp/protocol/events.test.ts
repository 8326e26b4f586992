import { expect, test } from 'vitest';
import { eventReader } from './events.ts';

test.each(['\n', '\r\n', '\r'])(
  'events are found wherever the stream is cut, with lines that end in %j',
  (end) => {
    const events = ['id: 1\ndata: a\n\n', 'data: é\ndata: b\n\n'].map((each) => each.replaceAll('\n', end));
    const stream = Buffer.from(events.join(''));
    for (let size = 1; size <= stream.length; size += 1) {
      const seen: string[] = [];
      const reader = eventReader((event) => seen.push(event.toString()));
      for (let at = 0; at < stream.length; at += size) reader.read(stream.subarray(at, at + size));
      expect(seen).toEqual(events);
    }
  },
);
