// Where each command lives. It is loaded when it is asked for.

import type { Command } from './command.ts';
import type { CommandName } from './summaries.ts';

export const commands: Readonly<Record<CommandName, () => Promise<{ default: Command }>>> = {
  doubt: () => import('./doubt.ts'),
  doctor: () => import('./doctor.ts'),
  resolve: () => import('./resolve.ts'),
  demo: () => import('./demo.ts'),
  completion: () => import('./completion.ts'),
};
