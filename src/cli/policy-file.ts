// A policy file that somebody named, read and checked.

import { readFileSync } from 'node:fs';
import { type PolicyFile, readPolicyFile } from '../mcp/index.ts';
import type { CommandName } from './summaries.ts';
import { usageError } from './usage.ts';

export function policiesIn(command: CommandName, path: string): PolicyFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw usageError(command, `${path} could not be read: ${(error as Error).message}`);
  }
  return readPolicyFile(text, path);
}
