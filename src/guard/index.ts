// One call of a framework's tool, guarded: what every adapter and the MCP proxy stand on.

export { isUnique as isUniqueCallId } from '../call/index.ts';
export {
  type Answer,
  type Asked,
  currentAttempt,
  type Execute,
  type Guard,
  type GuardOptions,
  guardOf,
  guardOfTool,
  isSemelTool,
} from './guard.ts';
export { type Guess, guessFrom } from './guess.ts';
export { policyReader } from './policies.ts';
export {
  type AnyPolicy,
  type Policy,
  type PolicyTerms,
  refuseKeys,
  refuseStrangers,
  termsOf,
} from './policy.ts';
export { jsonSchemaOf } from './schema.ts';
export { isToolError, lineFor, toldError } from './told.ts';
