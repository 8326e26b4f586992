// Which signals a guard passes on to its command.

/** SIGUSR1 too: Node.js would open its debugger. */
export const forwarded: readonly NodeJS.Signals[] = [
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
];

/** They ask a process to end. */
export function isEnding(name: NodeJS.Signals): boolean {
  return name === 'SIGTERM' || name === 'SIGINT' || name === 'SIGHUP' || name === 'SIGQUIT';
}
