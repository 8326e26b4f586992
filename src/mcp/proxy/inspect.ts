// What would hold for each tool of a server.

import { type PolicyFile, policyFor, type ToolPolicy } from '../policy/policies.ts';
import { fieldsOf, type ListedTool } from '../protocol/messages.ts';

export interface Inspected extends ToolPolicy {
  readonly tool: ListedTool;
}

export function inspected(tools: readonly ListedTool[], file: PolicyFile): readonly Inspected[] {
  return tools.map((tool) => ({ tool, ...policyFor(tool, file) }));
}

/** A file to start from: what holds now, spelt out, with the fields of each tool to choose from. */
export function starterFile(tools: readonly ListedTool[]): PolicyFile {
  const named = tools.map((tool): [string, NonNullable<PolicyFile['tools']>[string]] => {
    const { policy, errors } = policyFor(tool, { version: 1 });
    const effect = typeof policy === 'string' ? policy : policy.effect;
    if (effect === 'read' || effect === 'write-idempotent') return [tool.name, effect];
    const fields = Object.keys(fieldsOf(fieldsOf(tool.inputSchema).properties));
    const content = fields.filter((field) => wordy.test(field));
    return [tool.name, { effect, ...(content.length === 0 ? {} : { content }), errors }];
  });
  return { $comment: aboutErrors, version: 1, tools: Object.fromEntries(named) };
}

const aboutErrors =
  'errors: what a result with isError means. "ask": the same call runs again only after the model was asked. "in-doubt": it is held ' +
  'for a person. "refused" or "not-landed": only if an error of this tool always means that nothing was done.';

/** Fields that a model words anew: for a person to check. */
const wordy = /^(body|text|message|subject|description|comment|note|summary|reason|title|content)$/i;
