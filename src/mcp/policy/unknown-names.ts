// A policy file beside the server that it is for: what it names must be there.

import { findSimilar } from '../../core/contract/known-fields.ts';
import { type AnyPolicy, refuseUnknownFields } from '../../guard/index.ts';
import type { ListedTool } from '../protocol/messages.ts';
import type { FilePolicy, PolicyFile } from './policies.ts';

/** What the file names and the server does not have, as sentences: a misspelt tool goes by its hints, as if nobody had named it. */
export function unknownNames(file: PolicyFile, tools: readonly ListedTool[]): readonly string[] {
  const listed = new Map(tools.map((tool) => [tool.name, tool]));
  return Object.entries(file.tools ?? {}).flatMap(([name, policy]) => {
    const tool = listed.get(name);
    if (tool !== undefined) return strangeField(tool, policy);
    const meant = findSimilar(listed.keys(), name);
    return `the policy file names \`${name}\`, which is no tool of this server.${meant === undefined ? '' : ` Did you mean \`${meant}\`?`}`;
  });
}

function strangeField({ name, inputSchema }: ListedTool, policy: string | FilePolicy): readonly string[] {
  try {
    refuseUnknownFields(name, policy as AnyPolicy, inputSchema);
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}
