// Where each command lives. It is loaded when it is asked for.

import type { Command } from './command.ts';
import type { CommandName } from './summaries.ts';

export const commands: Readonly<Record<CommandName, () => Promise<{ default: Command }>>> = {
  run: () => import('./run.ts'),
  once: () => import('./once.ts'),
  step: () => import('./step.ts'),
  pick: () => import('./pick.ts'),
  recent: () => import('./recent.ts'),
  seed: () => import('./seed.ts'),
  mcp: () => import('./mcp.ts'),
  policy: () => import('./policy.ts'),
  ls: () => import('./ls.ts'),
  show: () => import('./show.ts'),
  doubt: () => import('./doubt.ts'),
  stats: () => import('./stats.ts'),
  key: () => import('./key.ts'),
  doctor: () => import('./doctor.ts'),
  audit: () => import('./audit.ts'),
  resolve: () => import('./resolve.ts'),
  retry: () => import('./retry.ts'),
  forget: () => import('./forget.ts'),
  prune: () => import('./prune.ts'),
  export: () => import('./export.ts'),
  import: () => import('./import.ts'),
  store: () => import('./store.ts'),
  demo: () => import('./demo.ts'),
  completion: () => import('./completion.ts'),
};
