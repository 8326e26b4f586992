import { expect, test } from 'vitest';
import { readMessage, type ToolCall } from '../protocol/messages.ts';
import { originalArgs, readCall } from './call-input.ts';

function argsOf(params: string): unknown {
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay",${params}}}`;
  const { message } = readMessage(Buffer.from(text)) as { message: ToolCall };
  return readCall(message, { scope: 'me', identity: {} }).args;
}

const round = '{"inputResponses":{"sure":true},"requestState":"s"}';

test.each([
  [
    'a further round, and a call with arguments that look like one',
    [
      '"arguments":{"to":"a"},"inputResponses":{"sure":true},"requestState":"s"',
      `"arguments":{"to":"a","«round»":${round}}`,
      `"arguments":{"to":"a","««round»»":${round}}`,
      `"arguments":{"to":"a","«round»":${round}},"inputResponses":{"sure":true},"requestState":"s"`,
    ],
  ],
  [
    'rounds of arguments that are not an object',
    ['"a"', '"b"', '["a"]', '{"0":"a"}', 'null', '{}', '{"«arguments»":"a"}'].map(
      (args) => `"arguments":${args},"requestState":"s"`,
    ),
  ],
  [
    'answers whose numbers would be rounded to the same one',
    [
      '12345678901234567890',
      '12345678901234567891',
      '"12345678901234567890"',
      '"«12345678901234567890»"',
    ].map((amount) => `"arguments":{},"inputResponses":{"amount":${amount}}`),
  ],
])('%s are told apart', (_what, calls) => {
  const told = calls.map((each) => JSON.stringify(argsOf(each)));
  expect(new Set(told).size).toBe(calls.length);
});

test('arguments with other names are unchanged', () => {
  expect(argsOf('"arguments":{"«x»":1,"round":2}')).toEqual({ '«x»': 1, round: 2 });
});

test.each(['{"to":"a"}', '{"«round»":1,"««arguments»»":2}', '["a"]', '"a"', 'null'])(
  'a server gets %s as its client sent it, also in a further round',
  (args) => {
    expect(originalArgs(argsOf(`"arguments":${args}`))).toEqual(JSON.parse(args));
    expect(originalArgs(argsOf(`"arguments":${args},"requestState":"s"`))).toEqual(JSON.parse(args));
  },
);
