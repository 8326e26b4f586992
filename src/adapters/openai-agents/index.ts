// Tools of the OpenAI Agents SDK whose effects land once: `tool(guard(semel, { name, parameters, execute }, { effect }))`.

export { currentAttempt, isToolError, type Policy, type PolicyTerms } from '../../guard/index.ts';
export type { Guarded, Policies } from './function-tool.ts';
export { guard } from './guard.ts';
