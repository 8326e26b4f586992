// Several tools and their policies, by name: a tool without its policy is refused by its guard, a policy without its tool
// here. It would be a misspelt name.

import { SemelError } from '../core/errors.ts';
import type { Policy } from './policy.ts';

export function policyReader(tools: object, policies: object): (name: string) => Policy | undefined {
  const names = Object.keys(tools);
  const example = "guard(semel, { refund }, { refund: { effect: '…' } })";
  if (Array.isArray(tools))
    throw new SemelError('CONTRACT_INVALID', 'The tools are a list, where each needs its name.', {
      path: 'tools',
      next: `Write ${example}.`,
    });
  const isOnePolicy =
    typeof (policies as unknown) === 'string' || ('effect' in policies && !names.includes('effect'));
  if (isOnePolicy)
    throw new SemelError('CONTRACT_INVALID', 'This is one policy, and no single tool that can be guarded.', {
      path: 'policies',
      next: `Name the tool and its policy: ${example}.`,
    });
  for (const name of Object.keys(policies))
    if (!names.includes(name))
      throw new SemelError('CONTRACT_INVALID', `There is a policy for \`${name}\`, and no such tool.`, {
        path: name,
        next: `The tools are ${names.join(', ')}.`,
      });
  return (name) => (Object.hasOwn(policies, name) ? (policies as Record<string, Policy>)[name] : undefined);
}
