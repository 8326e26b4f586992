import { expect, test } from 'vitest';
import type { Reply } from '../protocol/messages.ts';
import { parseReply } from '../protocol/numbers.ts';
import { addRunAgainTool, runAgainName } from './run-again.ts';

const listOf = (text: string) => parseReply(`{"jsonrpc":"2.0","id":1,"result":${text}}`) as Reply;
const first = { method: 'tools/list' };
const second = { method: 'tools/list', params: { cursor: 'c' } };
const names = (reply: Reply) =>
  ((reply as unknown as { result: { tools: { name: string }[] } }).result.tools ?? []).map(
    ({ name }) => name,
  );

test('the tool is added at the end of the list, which keeps its digits', () => {
  const list = listOf('{"tools":[{"name":"a","max":12345678901234567890}],"ttlMs":1.0}');
  const text = JSON.stringify(addRunAgainTool(first, list, () => true));
  expect(text).toContain('"max":12345678901234567890');
  expect(text).toMatch(/"a".*"semel_run_again".*"ttlMs":1/);
});

test.each([
  ['a page that is not the last one', first, '{"tools":[{"name":"a"}],"nextCursor":"c"}'],
  ['no tool that can be held back', first, '{"tools":[{"name":"free"}]}'],
  ['no tool', first, '{"tools":[]}'],
  ['a tool of this name', first, `{"tools":[{"name":"a"},{"name":"${runAgainName}"}]}`],
  ['no list', first, '{"tools":{}}'],
  ['a tool that is none', first, '{"tools":[null,7,{"title":"a"}]}'],
])('nothing is added to a list with %s', (_name, request, text) => {
  const list = listOf(text);
  expect(addRunAgainTool(request, list, ({ name }) => name === 'a')).toBe(list);
});

test('the last page always has it: the earlier pages are not known', () => {
  expect(names(addRunAgainTool(second, listOf('{"tools":[{"name":"free"}]}'), () => false))).toEqual([
    'free',
    runAgainName,
  ]);
  expect(names(addRunAgainTool(second, listOf('{"tools":[],"nextCursor":null}'), () => false))).toEqual([
    runAgainName,
  ]);
});
