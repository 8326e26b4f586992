// The tenant or application that records belong to: what was said, else the application's package name.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from './call-of.ts';

export function namespaceOf(given: string | undefined): string {
  const { SEMEL_NAMESPACE: fromEnvironment } = process.env;
  return (
    text('namespace', given) ??
    text('SEMEL_NAMESPACE', fromEnvironment || undefined) ??
    packageName() ??
    'default'
  );
}

/** Of the program that was started, never of the working directory: cron and a shell must agree. */
function packageName(): string | undefined {
  const started = process.argv[1];
  if (started === undefined) return undefined;
  for (let folder = dirname(started); ; folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) {
      try {
        const { name } = JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown };
        return typeof name === 'string' && name !== '' ? name : undefined;
      } catch {
        return undefined;
      }
    }
    if (folder === dirname(folder)) return undefined;
  }
}
