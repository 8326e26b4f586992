// Compares a policy file with its server: every tool and field that it names must exist.

import { findSimilar } from '../../core/contract/known-fields.ts';
import { type AnyPolicy, refuseUnknownFields } from '../../guard/index.ts';
import type { ListedTool } from '../protocol/messages.ts';
import type { FilePolicy, PolicyFile } from './policies.ts';

/** Returns a sentence per unknown name. The policy of a misspelt tool would have no effect. */
export function findUnknownNames(file: PolicyFile, tools: readonly ListedTool[]): readonly string[] {
  const listed = new Map(tools.map((tool) => [tool.name, tool]));
  return Object.entries(file.tools ?? {}).flatMap(([name, policy]) => {
    const tool = listed.get(name);
    if (tool !== undefined) return findUnknownField(tool, policy);
    const meant = findSimilar(listed.keys(), name);
    return `the policy file names \`${name}\`, but this server has no such tool.${meant === undefined ? '' : ` Did you mean \`${meant}\`?`}`;
  });
}

function findUnknownField({ name, inputSchema }: ListedTool, policy: string | FilePolicy): readonly string[] {
  try {
    refuseUnknownFields(name, policy as AnyPolicy, inputSchema);
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}
