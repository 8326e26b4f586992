// Preloaded by the examples that tests start: `semel` and its adapters mean the sources, not the last build.

import { registerHooks } from 'node:module';

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const [, adapter] = /^semel\/(ai-sdk|anthropic|openai-agents)$/.exec(specifier) ?? [];
    if (adapter !== undefined) return next(source(`adapters/${adapter}/index.ts`), context);
    return next(specifier === 'semel' ? source('index.ts') : specifier, context);
  },
});
