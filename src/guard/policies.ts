// Several tools and their policies, by name: a tool without its policy is refused by its guard, a policy without its tool
// here. It would be a misspelt name.

import { SemelError } from '../core/errors.ts';
import type { Policy } from './policy.ts';

export function policyReader(tools: object, policies: object): (name: string) => Policy | undefined {
  const names = Object.keys(tools);
  for (const name of Object.keys(policies))
    if (!names.includes(name))
      throw new SemelError('CONTRACT_INVALID', `There is a policy for \`${name}\`, and no such tool.`, {
        path: name,
        next: `The tools are ${names.join(', ')}.`,
      });
  return (name) => (Object.hasOwn(policies, name) ? (policies as Record<string, Policy>)[name] : undefined);
}
