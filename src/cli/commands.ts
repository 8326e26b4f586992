// Where each command lives. It is loaded when it is asked for.

import type { Command } from './command.ts';
import type { CommandName } from './summaries.ts';

export const commands: Readonly<Record<CommandName, () => Promise<{ default: Command }>>> = {
  doubt: () => import('./doubt.ts'),
  stats: () => import('./stats.ts'),
  key: () => import('./key.ts'),
  audit: () => import('./audit.ts'),
  resolve: () => import('./resolve.ts'),
  export: () => import('./export.ts'),
  import: () => import('./import.ts'),
};
