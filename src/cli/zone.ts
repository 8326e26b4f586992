// The time zone of slots: what was said, that of the run around, TZ, else that of the system.

import { readlinkSync } from 'node:fs';

export function zoneOf(given: string | undefined, ofRun?: string): string {
  // POSIX allows a colon before the name of a file.
  return given ?? ofRun ?? (process.env.TZ?.replace(/^:/, '') || systemZone());
}

/** Asking Intl takes longer than all else that a command does before it starts. */
function systemZone(): string {
  try {
    const [, name] = /zoneinfo\/(?:posix\/|right\/)?(.+)$/.exec(readlinkSync('/etc/localtime')) ?? [];
    if (name !== undefined) return name;
  } catch {
    // No link: not every system has one.
  }
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
