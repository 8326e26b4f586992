// docs/guides/mcp.md shows what clients and semel understand.

import { expect, test } from 'vitest';
import { readPolicyFile, toolFields } from '../../src/mcp/policy/policies.ts';
import { readPage, rows } from '../docs/page.ts';

const page = readPage('docs/guides/mcp.md');

/** The JSON under a heading. */
function jsonUnder(heading: string): Record<string, unknown> {
  const [, rest = ''] = page.text.split(new RegExp(`^#+ ${heading}$`, 'm'));
  const [, json = ''] = /```json\n([\s\S]*?)```/.exec(rest) ?? [];
  return JSON.parse(json);
}

test('the configuration has the shape that Claude and Cursor expect, and says what VS Code has instead', () => {
  const file = jsonUnder('Set it up');
  expect(Object.keys(file)).toEqual(['mcpServers']);
  const [server] = Object.values(file.mcpServers as Record<string, { command: string; args: string[] }>);
  expect(server).toEqual({
    command: 'npx',
    args: ['-y', 'semel', 'mcp', '--', 'npx', '-y', '@modelcontextprotocol/server-memory'],
  });
  expect(page.text).toContain('`.vscode/mcp.json` has `servers` instead of `mcpServers`');
  expect(page.text).toContain('`"type": "stdio"`');
});

test('the policy file of the page is in order, and its table has every field', () => {
  const file = jsonUnder('The policy file');
  expect(readPolicyFile(JSON.stringify(file), 'docs/guides/mcp.md')).toEqual(file);
  const named = rows(page, 'The policy file').flatMap(([first]) =>
    [...first!.matchAll(/`([\w$]+)`/g)].map(([, name]) => name!),
  );
  expect(named.sort()).toEqual([...toolFields].sort());
});
