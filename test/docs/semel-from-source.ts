// Preloaded by the programs that tests start: `semel` means the sources, not the last build.

import { registerHooks } from 'node:module';

const source = new URL('../../src/index.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'semel' ? source : specifier, context),
});
