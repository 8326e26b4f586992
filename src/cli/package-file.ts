// Files of the installed package. This folder and the built command are equally deep in it.

import { readFileSync } from 'node:fs';

export function readPackageFile(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}
