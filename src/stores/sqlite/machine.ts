// What the store asks the machine it runs on, in one place, so that tests can substitute it.

import { readFileSync, statfsSync } from 'node:fs';
import { uptime } from 'node:os';
import { type Clock, systemClock } from '../../core/clock.ts';
import { bootId } from '../../store/boot.ts';
import { connect, looker, type SqliteLike } from './client.ts';

export interface Machine {
  /** Changes with every boot; undefined if the platform has none. */
  bootId(): string | undefined;
  /** Milliseconds since boot, including sleep. */
  uptimeMs(): number;
  /** The file system's magic number; undefined if the platform has none. */
  fileSystem(path: string): number | undefined;
  /** The effective user id; undefined if the platform has none. */
  user(): number | undefined;
  connect(path: string): Promise<SqliteLike>;
  /** Returns a function that opens a file read-only. */
  looker(): Promise<(path: string) => SqliteLike>;
  /**
   * If true, an ordinary claim is a blind insert, and a settlement uses the row that its claim cached. If false, every
   * step reads its row first, with the same result.
   */
  readonly shortcuts: boolean;
  /** All mount points; undefined if the platform does not list them. */
  mountPoints(): readonly string[] | undefined;
}

export const thisMachine: Machine = {
  bootId,
  uptimeMs: () => uptime() * 1000,
  fileSystem: (path) => (process.platform === 'linux' ? statfsSync(path).type >>> 0 : undefined),
  user: () => process.geteuid?.(),
  connect,
  looker,
  shortcuts: true,
  mountPoints: () => mounts()?.map(({ point }) => point),
};

export function resolveMachine(clock: Clock, given: Partial<Machine> | undefined): Machine {
  // An injected clock provides its own uptime.
  const own = clock === systemClock ? {} : { uptimeMs: () => clock.mono() };
  return { ...thisMachine, ...own, ...given };
}

interface Mount {
  readonly point: string;
  /** The file system's type, for example `fuseblk`. */
  readonly type: string | undefined;
}

/** Mounts as this process sees them, on Linux only. */
export function mounts(): readonly Mount[] | undefined {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => ({
        point: unescapeOctal(line.split(' ')[4] ?? ''),
        type: line.split(' - ')[1]?.split(' ')[0],
      }));
  } catch {
    return undefined;
  }
}

/** mountinfo escapes spaces, tabs, line breaks and backslashes in octal. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
