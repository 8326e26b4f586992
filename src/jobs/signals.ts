// Which signals a guard passes on to its command.

import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

const forwarded = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/** They ask a process to end. */
export function isEnding(name: NodeJS.Signals): boolean {
  return name === 'SIGTERM' || name === 'SIGINT' || name === 'SIGHUP' || name === 'SIGQUIT';
}

/** Not those that whoever started this guard wants to be ignored, as nohup does. */
export function forwardedSignals(): readonly NodeJS.Signals[] {
  const ignored = ignoredMask();
  return forwarded.filter((name) => ((ignored >> BigInt(constants.signals[name] - 1)) & 1n) === 0n);
}

function ignoredMask(): bigint {
  try {
    const [, mask] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return BigInt(`0x${mask ?? '0'}`);
  } catch {
    return 0n;
  }
}
