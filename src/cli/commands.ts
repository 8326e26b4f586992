// Where each command lives. It is loaded when it is asked for.

import type { Command } from './command.ts';
import type { CommandName } from './summaries.ts';

export const commands: Readonly<Record<CommandName, () => Promise<{ default: Command }>>> = {
  ls: () => import('./ls.ts'),
  show: () => import('./show.ts'),
  doubt: () => import('./doubt.ts'),
  resolve: () => import('./resolve.ts'),
  retry: () => import('./retry.ts'),
  forget: () => import('./forget.ts'),
  prune: () => import('./prune.ts'),
};
