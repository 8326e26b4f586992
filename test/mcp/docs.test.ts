// docs/guides/mcp.md shows what clients and semel understand.

import { describe, expect, test } from 'vitest';
import { readPolicyFile, toolFields } from '../../src/mcp/policy/policies.ts';
import { firstNames, readPage } from '../docs/page.ts';

const page = readPage('docs/guides/mcp.md');

/** The JSON under a heading. */
function jsonUnder(heading: string): Record<string, unknown> {
  const [, rest = ''] = page.text.split(new RegExp(`^#+ ${heading}$`, 'm'));
  const [, json = ''] = /```json\n([\s\S]*?)```/.exec(rest) ?? [];
  return JSON.parse(json);
}

describe('the configuration has the shape that the client expects', () => {
  test.each([
    ['Claude Desktop, Claude Code, Cursor', 'mcpServers'],
    ['VS Code', 'servers'],
  ])('%s', (client, key) => {
    const file = jsonUnder(client);
    expect(Object.keys(file)).toEqual([key]);
    const [server] = Object.values(
      file[key] as Record<string, { command: string; args: string[]; type?: string }>,
    );
    expect(server?.command).toBe('npx');
    expect(server?.args.every((arg) => typeof arg === 'string')).toBe(true);
    expect(server?.args.slice(0, 4)).toEqual(['-y', 'semel', 'mcp', '--']);
    expect(server?.args.slice(4)).toEqual(['npx', '-y', '@modelcontextprotocol/server-memory']);
    expect([undefined, 'stdio']).toContain(server?.type);
    expect(Object.keys(server ?? {}).filter((name) => !['type', 'command', 'args'].includes(name))).toEqual(
      [],
    );
  });
});

test('the policy file of the page is in order, and its table has every field', () => {
  const file = jsonUnder('The policy file');
  expect(readPolicyFile(JSON.stringify(file), 'docs/guides/mcp.md')).toEqual(file);
  expect(firstNames(page, 'The policy file').sort()).toEqual([...toolFields].sort());
});
