// Shows which policy applies to each of a server's tools, and writes a policy file to start from.

import { type PolicyFile, policyFor, type ToolPolicy } from '../policy/policies.ts';
import { asRecord, type ListedTool } from '../protocol/messages.ts';

export interface Inspected extends ToolPolicy {
  readonly tool: ListedTool;
}

export function inspectTools(tools: readonly ListedTool[], file: PolicyFile): readonly Inspected[] {
  return tools.map((tool) => ({ tool, ...policyFor(tool, file) }));
}

/** Spells out the policies that apply now, with likely content fields. */
export function createStarterFile(tools: readonly ListedTool[]): PolicyFile {
  const named = tools.map((tool): [string, NonNullable<PolicyFile['tools']>[string]] => {
    const { policy, errors } = policyFor(tool, { version: 1 });
    const effect = typeof policy === 'string' ? policy : policy.effect;
    if (effect === 'read' || effect === 'write-idempotent') return [tool.name, effect];
    const fields = Object.keys(asRecord(asRecord(tool.inputSchema).properties));
    const content = fields.filter((field) => likelyContent.test(field));
    return [tool.name, { effect, ...(content.length === 0 ? {} : { content }), errors }];
  });
  return { $comment: errorsComment, version: 1, tools: Object.fromEntries(named) };
}

const errorsComment =
  'errors: what a result with isError means. "ask": the same call runs again only after the model was asked. "in-doubt": it is held ' +
  'for a person. "refused" or "not-landed": only if an error of this tool always means that nothing was done.';

/** Fields that a model probably rewords. A person has to check them. */
const likelyContent = /^(body|text|message|subject|description|comment|note|summary|reason|title|content)$/i;
