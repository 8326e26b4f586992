// The `semel` command: finds the subcommand, loads only that one, and turns errors into a message and an exit code.

import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { commands } from './commands/index.ts';

async function main([name, ...rest]: string[]): Promise<number> {
  if (name === '--version' || name === '-v') {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  if (isMangled(rest)) return say('semel: an argument is not valid UTF-8.', 64);
  await hideSecrets(rest);
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const { overview } = await import('./render/overview.ts');
    const asked = rest[0];
    if (name === 'help' && asked !== undefined) return main([asked, '--help']);
    process.stdout.write(overview());
    return name === undefined ? 64 : 0;
  }
  if (!Object.hasOwn(commands, name)) {
    const { findSimilar } = await import('../core/contract/known-fields.ts');
    const near = findSimilar(Object.keys(commands), name);
    const next = near === undefined ? 'See `semel --help`.' : `Did you mean \`semel ${near}\`?`;
    return complainAbout(`semel: there is no command ${JSON.stringify(name)}. ${next}`, 64);
  }
  try {
    return await (await commands[name as keyof typeof commands]()).default.run(rest, commands);
  } catch (error) {
    const { exitCodeOf } = await import('./exit-code.ts');
    const { thrownMessage } = await import('./caller.ts');
    const message = thrownMessage(name, error);
    return complainAbout(`semel ${name}: ${message}`, exitCodeOf(error));
  }
}

/** Every user of the machine can see the arguments of a running process. */
async function hideSecrets(args: readonly string[]): Promise<void> {
  if (!args.some((arg) => /[@?=]/.test(arg) && arg.includes(':'))) return;
  const { redactSecrets } = await import('../store/address.ts');
  if (args.some((arg) => redactSecrets(arg) !== arg)) process.title = 'semel';
}

/** For messages that may repeat the command line: hides secrets. */
async function complainAbout(sentence: string, code: number): Promise<number> {
  const { printAside } = await import('./render/print.ts');
  printAside(sentence);
  return code;
}

/** Node.js replaces invalid bytes by one character: two file names would become one. */
function isMangled(args: readonly string[]): boolean {
  if (!args.some((arg) => arg.includes('\uFFFD'))) return false;
  try {
    return !isUtf8(readFileSync('/proc/self/cmdline'));
  } catch {
    return false;
  }
}

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function say(sentence: string, code: number): number {
  process.stderr.write(`${sentence}\n`);
  return code;
}

/** Handles a stream's errors from its first use on: a guarded command that prints nothing never opens it. */
function onErrorOf(name: 'stdout' | 'stderr', handle: (error: NodeJS.ErrnoException) => void): void {
  const original = Object.getOwnPropertyDescriptor(process, name) as PropertyDescriptor;
  Object.defineProperty(process, name, {
    ...original,
    get() {
      Object.defineProperty(process, name, original);
      return process[name].on('error', handle);
    },
  });
}

// A reader may go away, which is fine; output that a full disk refused is an error.
onErrorOf('stdout', (error) => {
  if (error.code === 'EPIPE') process.exit();
  process.exit(say(`semel: the output could not be written (${error.message}).`, 74));
});
onErrorOf('stderr', () => undefined);

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
