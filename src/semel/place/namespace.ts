// The tenant or application that records belong to: what was said, otherwise the name in the application's package.json.

import { checkText } from '../../core/text.ts';
import { findApplication } from './application.ts';
import { readEnvironment } from './environment.ts';

interface NamespaceChoice {
  readonly name: string;
  /** The application's folder where nobody named the namespace: two of them must not share it unnoticed. */
  readonly root: string | undefined;
}

export function resolveNamespace(given: string | undefined): NamespaceChoice {
  const named =
    checkText('namespace', given) ?? checkText('SEMEL_NAMESPACE', readEnvironment('SEMEL_NAMESPACE'));
  if (named !== undefined) return { name: named, root: undefined };
  const { name = 'default', root } = findApplication({
    started: process.argv[1],
    cwd: workingFolder(),
    shellCwd: process.env.PWD,
    installed: import.meta.dirname,
  });
  return { name, root };
}

/** It may have been removed. */
function workingFolder(): string {
  try {
    return process.cwd();
  } catch {
    return '/';
  }
}
