// A wall clock for one server that a test moves while it runs: libfaketime, which reads the offset from a file. The
// monotonic clock stays true, as it does when somebody sets the time of a machine.

import { globSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface FakeClock {
  readonly env: Readonly<Record<string, string>>;
  move(ms: number): void;
  /** What libfaketime leaves behind of a process that was killed. */
  forget(pid: number): void;
}

/** The one for programs with threads serves those without, too. */
export const fakeTimeLibrary: string | undefined = globSync('/usr/lib/{*/,}faketime/libfaketimeMT.so.1')[0];

export function fakeClock(folder: string): FakeClock {
  if (fakeTimeLibrary === undefined) {
    throw new Error('A clock that moves needs libfaketime (Debian: package faketime).');
  }
  const file = join(folder, 'clock-offset');
  let offsetMs = 0;
  const write = () => {
    // By rename: who reads in between must find a whole number.
    writeFileSync(`${file}.new`, `${offsetMs < 0 ? '' : '+'}${(offsetMs / 1000).toFixed(3)}\n`, {
      mode: 0o644,
    });
    renameSync(`${file}.new`, file);
  };
  write();
  return {
    env: {
      // libc right behind it takes the place of an allocator like jemalloc, which asks for the time before
      // libfaketime can say it; the two would wait for each other for ever.
      LD_PRELOAD: `${fakeTimeLibrary} libc.so.6`,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // The stamps of files would be moved by today's offset, whenever they were made.
      NO_FAKE_STAT: '1',
    },
    move(ms) {
      offsetMs += ms;
      write();
    },
    forget(pid) {
      for (const left of ['faketime_shm_', 'sem.faketime_sem_']) {
        rmSync(join('/dev/shm', `${left}${pid}`), { force: true });
      }
    },
  };
}
