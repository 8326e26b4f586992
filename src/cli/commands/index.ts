// Where each command lives. Loaded on demand.

import type { Command } from '../command.ts';
import type { CommandName } from './summaries.ts';

export const commands: Readonly<Record<CommandName, () => Promise<{ default: Command }>>> = {
  run: () => import('./run.ts'),
  once: () => import('./once.ts'),
  step: () => import('./step.ts'),
  pick: () => import('./pick.ts'),
  recent: () => import('./recent.ts'),
  seed: () => import('./seed.ts'),
  mcp: () => import('./mcp.ts'),
  serve: () => import('./serve/serve.ts'),
  policy: () => import('./policy.ts'),
  ls: () => import('./ls/ls.ts'),
  show: () => import('./show/show.ts'),
  doubt: () => import('./doubt/doubt.ts'),
  watch: () => import('./watch/watch.ts'),
  ui: () => import('./ui.ts'),
  outbox: () => import('./outbox.ts'),
  stats: () => import('./stats/stats.ts'),
  key: () => import('./key/key.ts'),
  doctor: () => import('./doctor/doctor.ts'),
  audit: () => import('./audit/audit.ts'),
  resolve: () => import('./resolve/resolve.ts'),
  sweep: () => import('./sweep.ts'),
  retry: () => import('./retry.ts'),
  forget: () => import('./forget.ts'),
  prune: () => import('./prune.ts'),
  export: () => import('./export/export.ts'),
  import: () => import('./import/import.ts'),
  store: () => import('./store/store.ts'),
  explain: () => import('./explain/explain.ts'),
  demo: () => import('./demo/demo.ts'),
  completion: () => import('./completion/completion.ts'),
};
