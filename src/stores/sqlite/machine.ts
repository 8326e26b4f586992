// What the store asks of the machine it runs on, in one place, so that tests can give other answers.

import { readFileSync, statfsSync } from 'node:fs';
import { uptime } from 'node:os';
import { bootId } from '../../store/boot.ts';
import { connect, looker, type SqliteLike } from './client.ts';

export interface Machine {
  /** Another one after every start of the machine; undefined where the platform has no name for it. */
  bootId(): string | undefined;
  /** Since the machine was started, with the time it slept, in milliseconds. */
  uptimeMs(): number;
  /** The magic number of the file system; undefined where the platform has none. */
  fileSystem(path: string): number | undefined;
  /** The effective user; undefined where the platform has none. */
  user(): number | undefined;
  connect(path: string): Promise<SqliteLike>;
  /** Opens a file only to look at it. */
  looker(): Promise<(path: string) => SqliteLike>;
  /**
   * The ordinary claim is a blind insert, and the ordinary settlement goes by the row that the claim left in memory.
   * False: every step reads its row first, which must come to the same.
   */
  readonly shortcuts: boolean;
  /** Where something is mounted; undefined where the platform does not tell. */
  mountPoints(): readonly string[] | undefined;
}

let thisBoot: { readonly id: string | undefined } | undefined;

export const thisMachine: Machine = {
  bootId() {
    // A process does not outlive a boot.
    thisBoot ??= { id: bootId() };
    return thisBoot.id;
  },
  uptimeMs: () => uptime() * 1000,
  fileSystem: (path) => (process.platform === 'linux' ? statfsSync(path).type >>> 0 : undefined),
  user: () => process.geteuid?.(),
  connect,
  looker,
  shortcuts: true,
  mountPoints: () => mounts()?.map(({ point }) => point),
};

export interface Mount {
  readonly point: string;
  /** Of the file system, for example `fuseblk`. */
  readonly type: string | undefined;
}

/** Undefined where the platform does not tell. */
export function mounts(): readonly Mount[] | undefined {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .map((line) => ({
        point: unescaped(line.split(' ')[4] ?? ''),
        type: line.split(' - ')[1]?.split(' ')[0],
      }));
  } catch {
    return undefined;
  }
}

/** Spaces, tabs, line breaks and backslashes are written in octal, byte by byte. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
