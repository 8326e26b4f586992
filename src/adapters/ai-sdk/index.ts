// Tools of the AI SDK whose effects land once: `tools: guard(semel, { refund, search }, { refund: {…}, search: 'read' })`.

export { currentAttempt, isToolError, type Policy, type PolicyTerms } from '../../guard/index.ts';
export { guard } from './guard.ts';
export type { Guarded, Policies } from './tool-set.ts';
