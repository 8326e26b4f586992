// Preloaded by the programs that tests start: `semel` and its doors mean the sources, not the last build.

import { registerHooks } from 'node:module';
import manifest from '../../package.json' with { type: 'json' };

const sources = new Map(
  Object.entries(manifest.exports).flatMap(([door, target]) => {
    if (typeof target === 'string') return [];
    const source = target.default.replace('./dist/', '../../src/').replace(/\.js$/, '.ts');
    return [[door.replace('.', manifest.name), new URL(source, import.meta.url).href] as const];
  }),
);

registerHooks({
  resolve: (specifier, context, next) => next(sources.get(specifier) ?? specifier, context),
});
