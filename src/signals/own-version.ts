// The version of this package. This folder and the built files are equally deep in it.

import { readFileSync } from 'node:fs';

export function ownVersion(): string {
  try {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    const { name, version } = JSON.parse(text) as { readonly name?: unknown; readonly version?: unknown };
    return name === 'semel' && typeof version === 'string' ? version : 'unknown';
  } catch {
    // Bundled into another program.
    return 'unknown';
  }
}
