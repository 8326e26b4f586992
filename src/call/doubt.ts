// What may be done about a record in doubt without a person: run it again if class, provider or contract make that safe;
// otherwise ask `verify`; otherwise leave it in doubt and say so.

import { mayContinue, recordVersion } from '../core/contract/version.ts';
import { isRepeatable, stricter } from '../core/contract/words.ts';
import { findDrift, isSameContent } from '../core/key/identity.ts';
import type { ClaimFor, StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { trustedWindow } from './key-use.ts';

/** The ways out, in the order in which they are tried. */
export function listWaysOut(call: Call, record: StoredRecord): readonly ClaimFor[] {
  if (isOtherWork(call, record)) return [];
  const ways: ClaimFor[] = [];
  if (!call.verifyOnly && mayRerun(call, record)) ways.push('rerun');
  if (call.tool.verify !== undefined) ways.push('verify');
  return ways;
}

function mayRerun(call: Call, record: StoredRecord): boolean {
  const { contract } = call.tool;
  if (mayAlwaysRerun(call, record)) return true;
  if (trustedWindow(call.tool) === null || !record.keyed || !isSameCode(call, record)) return false;
  // The provider may have seen the request, so it must be repeated exactly, with its args.
  if (record.args !== null && contract.redact.length === 0) return true;
  // Steps that landed are not sent again; the others may be made from the caller's args, if those are not others.
  return contract.via === 'steps' && findDrift(record.content, call.content()).length === 0;
}

/**
 * A repeatable write meets an effect of an earlier, stricter contract. Settling that one would not make this write,
 * but would report that it had.
 */
export function isOtherWork(call: Call, record: StoredRecord): boolean {
  if (!isRepeatable(call.tool.contract.effect) || mayAlwaysRerun(call, record)) return false;
  return !isSameContent(record.content, call.content());
}

/** Code of another major version may not understand the stored args, and another provider does not know the key. */
export function isSameCode({ tool }: Pick<Call, 'tool'>, { version }: StoredRecord): boolean {
  return mayContinue(version, recordVersion(tool.contract));
}

/** How long after the first dispatch a re-run is allowed; null: always. */
export function rerunWithin(call: Call, record: StoredRecord): number | null {
  return mayAlwaysRerun(call, record) ? null : call.tool.contract.rerunWithinMs;
}

/** Whether one request may be sent again inside an attempt: never if a re-run would be refused. */
export function mayRepeat(call: Call, record: StoredRecord): boolean {
  return mayAlwaysRerun(call, record) || (call.tool.contract.rerunWithinMs !== null && record.keyed);
}

function mayAlwaysRerun(call: Call, record: StoredRecord): boolean {
  return isHarmless(call, record) || call.tool.contract.onDoubt === 'rerun';
}

/** Harmless to repeat, also by the contract under which it was started. */
export function isHarmless({ tool }: Call, record: StoredRecord): boolean {
  return isRepeatable(stricter(tool.contract.effect, record.effect));
}
