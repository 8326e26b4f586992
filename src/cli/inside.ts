// The commands that mean something inside `semel run` only.

import { type Inside, insideOf } from '../jobs/index.ts';
import type { CommandName } from './commands/summaries.ts';
import { usageError } from './usage.ts';

export function mustBeInside(command: CommandName): Inside {
  const inside = insideOf();
  if (inside !== undefined) return inside;
  throw usageError(
    command,
    'it belongs to a run, and this is none',
    `Call it in a command that \`semel run <job> -- …\` started.`,
  );
}
