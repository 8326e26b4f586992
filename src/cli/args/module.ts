// Loads a user's module that the command line names. Nothing is ever searched for.

import { closeSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { SemelError } from '../../core/errors.ts';
import type { Semel } from '../../semel/index.ts';
import { openRegular } from '../../store/files.ts';

/** With `require`: compiled code, which the command is started from, has no `import`. */
export function exportsOf(path: string): object {
  const file = resolve(path);
  try {
    // Node.js would wait for a pipe.
    if (existsSync(file)) closeSync(openRegular(file));
    return createRequire(file)(file) as object;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_REQUIRE_ASYNC_MODULE')
      throw new SemelError('INVALID_ARGS', `${path}, or a module it imports, has an \`await\` at the top.`, {
        next: 'Export the Semel instance from a module without one, and name that.',
      });
    // The rest lists which modules required the file.
    const [why] = String((error as Error).message).split('\n');
    throw new SemelError('INVALID_ARGS', `${path} could not be loaded: ${why?.replace(/\.+$/, '')}.`, {
      next: 'Name a file that Node.js can load, .js or .ts.',
    });
  }
}

/** By its shape: the module has its own copy of the package. */
export function instancesIn(exports: object, path: string, namespace: string | undefined): readonly Semel[] {
  const parts = Object.values(exports).flatMap((each) =>
    isInstance(each) || typeof each !== 'object' || each === null ? [each] : Object.values(each),
  );
  const all = [...new Set(parts)].filter(isInstance);
  const chosen = all.filter((semel) => namespace === undefined || semel.namespace === namespace);
  if (chosen.length > 0) return chosen;
  if (all.length === 0)
    throw new SemelError('INVALID_ARGS', `${path} does not export what \`createSemel\` returned.`, {
      next: 'Write in it: export const semel = createSemel(…), and define its tools there, or import them.',
    });
  const names = all.map((semel) => JSON.stringify(semel.namespace)).join(', ');
  throw new SemelError('INVALID_ARGS', `${path} uses the namespace ${names}, not "${namespace}".`, {
    next: 'Leave --namespace out, or name one that the module uses.',
  });
}

function isInstance(value: unknown): value is Semel {
  const { namespace, doubts, close } = (value ?? {}) as Partial<Semel>;
  return typeof namespace === 'string' && typeof doubts?.sweep === 'function' && typeof close === 'function';
}

/** Ends the process once everything is printed, without waiting for what the module opened. */
export function exitSoon(code: number): void {
  process.stdout.write('', () => process.exit(code));
}
