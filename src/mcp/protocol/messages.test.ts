import { expect, test } from 'vitest';
import { readMessage, type ToolCall } from './messages.ts';

function argsOf(args: string): unknown {
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":${args}}}`;
  return (readMessage(Buffer.from(text)) as { message: ToolCall }).message.params.arguments;
}

test('a number that would be rounded is distinguished from every string', () => {
  const digits = '12345678901234567890';
  const written = [digits, `"${digits}"`, `"«${digits}»"`, `"««${digits}»»"`, '1e400', '"«1e400»"', '"«1»"'];
  const told = written.map((each) => JSON.stringify(argsOf(`{"id":${each}}`)));
  expect(new Set(told).size).toBe(written.length);
});

test('equal strings are equal, however they are escaped and whatever is next to them', () => {
  const [plain, escaped, beside] = ['"«1»"', '"\\u00AB\\u0031»"', '"«1»","x":1e400'].map(
    (each) => argsOf(`{"id":${each}}`) as { id: string },
  );
  expect(escaped).toEqual(plain);
  expect(beside?.id).toBe(plain?.id);
  expect(argsOf('{"says":"«Bonjour»"}')).toEqual({ says: '«Bonjour»' });
});
