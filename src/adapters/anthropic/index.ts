// Tools of the Anthropic SDK whose effects land once: `tools: guard(semel, { refund, search }, { refund: {…}, search: 'read' })`.

export { currentAttempt, isToolError, type Policy, type PolicyTerms } from '../../guard/index.ts';
export { guard } from './guard.ts';
export type { Guarded, Policies } from './runnable-tool.ts';
export { type ToolResult, type ToolResultsOptions, type ToolUse, toolResults } from './tool-results.ts';
