// A contract's version, and which records it can answer.

import type { Via } from './classify.ts';
import { refuse } from './contract-checks.ts';

export function checkVersion(name: string, version: string): string {
  if (typeof version !== 'string' || !/^[0-9A-Za-z][0-9A-Za-z.+-]{0,31}$/.test(version)) {
    refuse(
      'version',
      `${name}: ${JSON.stringify(version)} is not a version.`,
      "Write it like '2' or '2.1.0'.",
    );
  }
  return version;
}

/**
 * The version that a record is made with. Made of steps, an effect is other code than one that its provider knows by a key:
 * neither may repeat what the other left in doubt.
 */
export function recordVersion({
  version,
  via,
}: {
  readonly version: string;
  readonly via: Via | undefined;
}): string {
  return via === 'steps' ? `steps/${version}` : version;
}

/** Of a record's version: each of its effects has a record of its own. */
export function isMadeOfSteps(version: string): boolean {
  return version.startsWith('steps/');
}

/** Calls and records with the same major version are compatible. */
export function majorVersion(version: string): string {
  return version.split('.', 1)[0] as string;
}
