// A policy file that somebody named, read and checked.

import { type PolicyFile, readPolicyFile } from '../../mcp/index.ts';
import type { CommandName } from '../commands/summaries.ts';
import { smallText } from './input.ts';

export function policiesIn(command: CommandName, path: string): PolicyFile {
  return readPolicyFile(smallText(command, path), path);
}
