// The time zone of slots: the option, the surrounding run, TZ, otherwise the system's.

import { readlinkSync } from 'node:fs';

export function zoneOf(given: string | undefined, ofRun?: string): string {
  return given ?? ofRun ?? (zoneIn(process.env.TZ ?? '') || systemZone());
}

/** POSIX allows a leading colon, a file instead of a name, and a name with an offset. */
function zoneIn(tz: string): string | undefined {
  const name = tz.replace(/^:/, '');
  if (name === '/etc/localtime') return undefined;
  const [, inFile] = zoneFile.exec(name) ?? [];
  return inFile ?? name.replace(/^(posix|right)\//, '').replace(/^(UTC|GMT)[+-]?0$/, '$1');
}

const zoneFile = /zoneinfo\/(?:posix\/|right\/)?(.+)$/;

/** Asking Intl takes longer than the rest of a command's start. */
export function systemZone(link = '/etc/localtime'): string {
  try {
    const [, name] = zoneFile.exec(readlinkSync(link)) ?? [];
    if (name !== undefined) return name;
  } catch {
    // Not every system has this link.
  }
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  // The answer to an empty TZ, as `TZ: ${TZ}` of a compose file leaves it.
  return timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}
