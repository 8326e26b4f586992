// A call as stored in a row of the outbox, and the call that a relay makes from it: with the row's key, never a derived one. Refuses
// a row that was changed since it was staged.

import { Call, type Identity, type Tool, unstoredMaker } from '../call/index.ts';
import { decodeResult } from '../core/codec/codec.ts';
import { damagedRecord } from '../store/damage.ts';
import { type Intent, type OutboxRow, strictPrint } from '../store/outbox.ts';
import { encodeSummed, isIntact } from '../store/summed.ts';

export interface StagedCall {
  /** Encoded. */
  readonly args: string;
  readonly content: string | null;
  readonly olderKeys: readonly string[];
  readonly periodEndsAt: number | null;
  readonly identity: Identity;
  readonly again: string | null;
  readonly notAfter: number | null;
  /** The call's own, where that of the row keeps it from following a record. */
  readonly fingerprint?: string | null;
}

/** Larger args are not stored in a record either. */
const maxStoredLength = 65_536;

/** The other fields of a row. The call's text has a checksum over both. */
type About = Pick<Intent, 'namespace' | 'key' | 'contract' | 'version' | 'group' | 'fingerprint' | 'caller'>;

/**
 * What a record must have, besides the key, to take the row along. A call with other strict content must not take it along, so
 * a relay looks.
 */
export function rowPrint({ tool, fingerprint }: Call): string | null {
  return tool.contract.strict.length === 0 ? fingerprint : strictPrint;
}

/** A call that lands takes the row along, in one commit. */
export function isFollowing({ fingerprint }: Pick<OutboxRow, 'fingerprint'>): boolean {
  return fingerprint !== strictPrint;
}

export function fingerprintOf(row: OutboxRow, staged: StagedCall): string | null {
  return staged.fingerprint === undefined ? row.fingerprint : staged.fingerprint;
}

export function encodeCall(about: About, call: Call, args: string): string {
  const { olderKeys, periodEndsAt, identity, again, notAfter, fingerprint } = call;
  const content = call.content();
  const staged: StagedCall = {
    args,
    content,
    olderKeys,
    periodEndsAt,
    identity,
    again,
    notAfter,
    ...(about.fingerprint === fingerprint ? {} : { fingerprint }),
  };
  return encodeSummed(nameOf(about), staged);
}

/** Throws if the row is not what was staged. */
export function readCall(row: OutboxRow): StagedCall {
  if (isIntact(nameOf(row), row.call)) return JSON.parse(row.call) as StagedCall;
  throw damagedRecord(row.namespace, row.key, 'what is staged in the outbox was changed since');
}

function nameOf({ namespace, key, contract, version, group, fingerprint, caller }: About): string {
  return JSON.stringify([namespace, key, contract, version, group, fingerprint, caller]);
}

export function toCall(tool: Tool, row: OutboxRow, staged: StagedCall): Call {
  const { namespace, key } = row;
  const { args, content, ...rest } = staged;
  const parts = {
    ...rest,
    tool,
    namespace,
    key,
    stagedAt: row.stagedAt,
    fingerprint: fingerprintOf(row, staged),
    args: decodeResult(args),
    intent: '',
    signal: undefined,
  };
  const storedArgs = () => (args.length > maxStoredLength ? null : args);
  return new Call(parts, { ...unstoredMaker, content: () => content, storedArgs });
}
