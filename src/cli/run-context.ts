// The run around a command that only works inside `semel run`.

import { currentRun, type RunContext } from '../jobs/index.ts';
import type { CommandName } from './commands/summaries.ts';
import { usageError } from './usage.ts';

export function requireRun(command: CommandName): RunContext {
  const run = currentRun();
  if (run !== undefined) return run;
  throw usageError(
    command,
    'it only works inside a run',
    'Call it from a command that `semel run <job> -- …` started.',
  );
}
