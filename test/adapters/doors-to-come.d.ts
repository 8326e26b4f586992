// Until package.json and tsconfig.json have these doors: what the examples import. Then this file goes.

declare module 'semel/openai-agents' {
  export const guard: typeof import('../../src/adapters/openai-agents/index.ts').guard;
}

declare module 'semel/anthropic' {
  export const guard: typeof import('../../src/adapters/anthropic/index.ts').guard;
  export const toolResults: typeof import('../../src/adapters/anthropic/index.ts').toolResults;
}
