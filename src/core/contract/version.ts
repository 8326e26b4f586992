// A contract's version, and which records it can answer.

import type { Contract } from './contract.ts';
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
 * neither may repeat what the other left in doubt. Nor may code with another provider: it does not know the key. The steps of a call that
 * is only observed have no records.
 */
export function recordVersion({
  version,
  via,
  providerMark,
  mode,
}: Pick<Contract, 'version' | 'via' | 'providerMark' | 'mode'>): string {
  const own = via === 'steps' && mode !== 'observe' ? `steps/${version}` : version;
  return providerMark === null ? own : `${own}@${providerMark}`;
}

/** By a record's version: each of its effects has a record of its own. */
export function isMadeOfSteps(version: string): boolean {
  return version.startsWith('steps/');
}

/** Calls and records with the same major version are compatible. */
export function majorVersion(version: string): string {
  return version.split(/[.@]/, 1)[0] as string;
}

/** Without the provider. */
export function shownVersion(version: string): string {
  return splitVersion(version)[0];
}

function splitVersion(version: string): readonly [version: string, provider: string] {
  const at = version.indexOf('@');
  return at === -1 ? [version, ''] : [version.slice(0, at), version.slice(at)];
}

/** What a record of the first version left open may be continued by code of the second one. */
export function mayContinue(recorded: string, own: string): boolean {
  if (recorded === own) return true;
  return majorVersion(recorded) === majorVersion(own) && isSameProvider(recorded, own);
}

/** A record that was made without a provider says nothing about one. */
export function isSameProvider(recorded: string, own: string): boolean {
  const [, provider] = splitVersion(recorded);
  return provider === '' || provider === splitVersion(own)[1];
}

/** The first version, sent to a provider by code of the second one. */
export function sentBy(recorded: string, own: string): string {
  const [version, provider] = splitVersion(recorded);
  return provider === '' ? `${version}${splitVersion(own)[1]}` : recorded;
}
