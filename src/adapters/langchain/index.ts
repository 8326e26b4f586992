// Tools of LangChain whose effects land once: `tools: [guard(semel, refund, { effect: 'irreversible', per: 'ever' })]`.

export { currentAttempt, isToolError, type Policy, type PolicyTerms } from '../../guard/index.ts';
export { guard } from './guard.ts';
export { resultOf } from './message.ts';
export { type GuardMiddleware, guardMiddleware, inOrder } from './middleware.ts';
export { toolFrom } from './tool-from.ts';
export type { AnyTool, InputOf } from './tool-shape.ts';
