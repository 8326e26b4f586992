#!/usr/bin/env node
// The `semel` command: finds the command, loads only that one, and turns errors into a sentence and an exit code.
// Nothing but this file may load on a Node.js that is too old, so that the sentence about it can be said.

import { readFileSync } from 'node:fs';
import { supportSentence } from '../core/node-support.ts';

const help = `semel: every effect lands once

Usage: semel <command> [options]

  doubt                          what is in doubt and needs a decision
  resolve <id@fence> <verdict>   decide it: landed, not-landed, run-again or abandon

Options of every command:
  --store <url>                  sqlite:path/to/ledger.db (default: SEMEL_STORE, else the ledger of this user)
  --namespace <name>             the application (default: SEMEL_NAMESPACE, else "default")
  --json                         for programs
  -h, --help                     semel <command> --help tells more
  -v, --version

Exit codes: 0 done, 1 something is in doubt (doubt --exit-code), 64 usage, 69 store unavailable, 70 refused.
`;

const commands: Record<string, () => Promise<{ run(args: string[]): Promise<number> }>> = {
  doubt: () => import('./doubt.ts'),
  resolve: () => import('./resolve.ts'),
};

async function main([name, ...rest]: string[]): Promise<number> {
  const tooOld = supportSentence(process.versions.node);
  if (tooOld !== undefined) return say(tooOld, 69);
  if (name === '--version' || name === '-v') {
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    process.stdout.write(`${manifest.version}\n`);
    return 0;
  }
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(help);
    return name === undefined ? 64 : 0;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined)
    return say(`semel: there is no command ${JSON.stringify(name)}. \`semel --help\` lists them.`, 64);
  const { exitCodeOf } = await import('./exit-code.ts');
  try {
    return await (await load()).run(rest);
  } catch (error) {
    return say(`semel ${name}: ${error instanceof Error ? error.message : String(error)}`, exitCodeOf(error));
  }
}

function say(sentence: string, code: number): number {
  process.stderr.write(`${sentence}\n`);
  return code;
}

// Whoever reads may stop reading.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});

process.exitCode = await main(process.argv.slice(2));
