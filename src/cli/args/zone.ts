// The time zone of slots: what was said, that of the run around, TZ, else that of the system.

import { readlinkSync } from 'node:fs';

export function zoneOf(given: string | undefined, ofRun?: string): string {
  return given ?? ofRun ?? (zoneIn(process.env.TZ ?? '') || systemZone());
}

/** POSIX allows a colon in front, a file instead of a name, and a name with its offset. */
function zoneIn(tz: string): string | undefined {
  const name = tz.replace(/^:/, '');
  if (name === '/etc/localtime') return undefined;
  const [, inFile] = zoneFile.exec(name) ?? [];
  return inFile ?? name.replace(/^(posix|right)\//, '').replace(/^(UTC|GMT)[+-]?0$/, '$1');
}

const zoneFile = /zoneinfo\/(?:posix\/|right\/)?(.+)$/;

/** Asking Intl takes longer than all else that a command does before it starts. */
function systemZone(): string {
  try {
    const [, name] = zoneFile.exec(readlinkSync('/etc/localtime')) ?? [];
    if (name !== undefined) return name;
  } catch {
    // No link: not every system has one.
  }
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
