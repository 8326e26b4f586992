// A framework may dispatch one call of its model once more in another turn: an approval that is sent twice, a state that
// is resumed by two jobs. Such a call belongs to the turn in which it was first made, and has that turn's key. Its
// tool_call_id tells, together with what it asks for, so that an id that a provider uses twice is no mistake of ours.

import type { Contract } from '../../core/contract/contract.ts';
import { isRepeatable } from '../../core/contract/words.ts';
import type { Call } from '../call.ts';
import { createClaimRequest, firstPurpose } from '../claim.ts';
import type { Env } from '../env.ts';

/** The call as it belongs to its original turn; undefined: nobody can tell, and it stands as it is. */
export function findOriginalTurn({ ledger, random, owner }: Env, call: Call): Promise<Call> | undefined {
  const { inTurn, identity } = call;
  const { toolCallId, turn } = identity;
  if (toolCallId === undefined || inTurn === undefined || !isTraceable(call, toolCallId)) return undefined;
  return ledger
    .markFirst(createClaimRequest(markOf(call, inTurn(toolCallId)), firstPurpose, random.token(), owner))
    .then((made) => (made.turn === null || made.turn === turn ? call : inTurn(made.turn)));
}

function isTraceable({ tool, identity, fingerprint }: Call, id: string): boolean {
  const { per, mode, effect, name } = tool.contract;
  const isBoundByTurn = per === 'turn' && identity.weak !== true && fingerprint === null;
  return isBoundByTurn && mode === 'enforce' && !isRepeatable(effect) && isUnique(id, name);
}

/** Where such marks are kept: beside the records, so that nobody takes them for effects. */
const callsIn = (namespace: string) => `${namespace}${callsSuffix}`;
export const isCallsNamespace = (namespace: string) => namespace.endsWith(callsSuffix);
const callsSuffix = ' (calls)';

/**
 * Nothing runs under it: it keeps who made the call first. Its keys, also those of earlier forms of the contract, are the
 * ones that the call would have in a turn of its id.
 */
function markOf({ tool, namespace, identity }: Call, inTurnOfId: Call): Call {
  const windowMs = tool.contract.windowMs + longerMs;
  // It does not lapse where its settlement was lost: whoever comes next would take it for their own turn.
  const contract: Contract = { ...tool.contract, dispatch: 'explicit', windowMs, leaseMs: longerMs };
  return inTurnOfId.asMark({ ...tool, contract }, callsIn(namespace), identity);
}

/** The record of the call answers from its end on, which may be days later where it was in doubt. Past that a mark does no harm. */
const longerMs = 30 * 24 * 3_600_000;

/** Of an instant or of chance: those of a name are the same for the same wish, and the empty one is everybody's. */
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[1467][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
/** Letters and digits, and not a word with a number behind it. */
const randomEnd = /(?:^|[^a-z0-9])(?=[a-z]*\d)(?=\d*[a-z])(?![a-z]+\d+$)[a-z0-9]{16,}$/i;

/**
 * By the looks of it, of 64 random bits or more. Some models count their calls from the start in every run, others name
 * them after the tool: the same wish in a later turn would be taken for the first one.
 */
export function isUnique(toolCallId: string, tool: string): boolean {
  const named = plain(tool.split(/[./:]/).at(-1) as string);
  const isNamed = named.length > 3 && plain(toolCallId).includes(named);
  return !isNamed && (uuid.test(toolCallId) || randomEnd.test(toolCallId));
}

function plain(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]/g, '');
}
