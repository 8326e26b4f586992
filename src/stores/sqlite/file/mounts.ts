// What is mounted where, as this process sees it. Linux only.

import { readFileSync } from 'node:fs';

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
