// What a long run writes down about itself: enough to have it again, and nothing that names a machine.

import { execFileSync } from 'node:child_process';
import { availableParallelism, totalmem } from 'node:os';

export interface Circumstances {
  readonly commit: string;
  readonly command: string;
  readonly machine: string;
  readonly date: string;
}

export function circumstances(command: string): Circumstances {
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return {
    commit: commitNow(),
    command,
    machine: `${availableParallelism()} cores, ${gigabytes} GB, Node ${process.versions.node}, ${process.platform}`,
    date: new Date().toISOString().slice(0, 10),
  };
}

function commitNow(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  try {
    const changes = git('status', '--porcelain', '--', 'src', 'test');
    return `${git('rev-parse', '--short=12', 'HEAD')}${changes === '' ? '' : ', with uncommitted changes'}`;
  } catch {
    return 'unknown';
  }
}
