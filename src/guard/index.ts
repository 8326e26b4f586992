// Guards one call of a framework's tool. Every adapter and the MCP proxy build on it.

export { isUnique as isUniqueCallId } from '../call/index.ts';
export {
  type Answer,
  createGuard,
  currentAttempt,
  type Execute,
  type FrameworkCall,
  type Guard,
  type GuardOptions,
  guardSemelTool,
  isSemelTool,
} from './guard.ts';
export { type Guess, guessIdentity } from './guess.ts';
export { isInputRejection } from './input-rejection.ts';
export { errorForModel, isToolError, noteForModel } from './model-text.ts';
export {
  type AnyPolicy,
  createPolicyLookup,
  type Policy,
  type PolicyTerms,
  readPolicy,
  refuseKeyFields,
  refuseUnknownFields,
} from './policy.ts';
export { toJsonSchema } from './schema.ts';
