// Builds the command once for all tests that use it: as users have it, and it starts in half the time. Removed afterwards.

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bundle } from '../../scripts/build.ts';
import { findNeeds } from '../servers/needs.ts';

const root = join(import.meta.dirname, '../..');

export default async function build(project: TestProject): Promise<(() => void) | undefined> {
  if (!(await findNeeds(project)).has('command')) {
    process.env.SEMEL_BUILT_COMMAND = '/not-built/test/servers/needs.ts/does-not-see-who-uses-it';
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), 'semel-built-'));
  await bundle(join(folder, 'dist'));
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
  process.env.SEMEL_BUILT_COMMAND = join(folder, 'dist/lib/semel.cjs');
  return () => rmSync(folder, { recursive: true, force: true });
}
