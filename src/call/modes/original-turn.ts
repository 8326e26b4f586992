// A framework may dispatch one call of its model again in another turn: an approval is sent twice, two jobs resume one
// state. Such a call belongs to the turn in which it was first made, and has that turn's key. It is recognised by its
// tool_call_id together with its identity args, so that an id that a provider uses twice does no harm.

import type { Contract } from '../../core/contract/contract.ts';
import { isRepeatable } from '../../core/contract/words.ts';
import { isSemelError } from '../../core/errors.ts';
import type { Call } from '../call.ts';
import { createClaimRequest, firstPurpose } from '../claim.ts';
import type { Env } from '../env.ts';
import { type Result, refuse } from '../receipt.ts';

/** The call in its original turn; undefined: its id does not identify it, so the call is not changed. */
export function findOriginalTurn({ ledger, random, owner }: Env, call: Call): Promise<Call> | undefined {
  if (!isTraceable(call)) return undefined;
  const { inTurn, identity } = call;
  const { toolCallId, turn } = identity;
  return ledger
    .markFirst(createClaimRequest(createMark(call, inTurn(toolCallId)), firstPurpose, random.token(), owner))
    .then((made) => (made.turn === null || made.turn === turn ? call : inTurn(made.turn)));
}

/** A call whose original turn cannot be read is not run: it may be done already. */
export async function runInOriginalTurn(
  call: Call,
  finding: Promise<Call>,
  run: (call: Call) => Result | Promise<Result>,
): Promise<Result> {
  let found: Call;
  try {
    found = await finding;
  } catch (error) {
    if (!isSemelError(error)) throw error;
    return refuse(call, undefined, error);
  }
  return run(found.with({ inTurn: undefined }));
}

type TraceableCall = Call & {
  readonly inTurn: (turn: string) => Call;
  readonly identity: { readonly toolCallId: string };
};

/** Its id identifies it in any turn. */
export function isTraceable(call: Call): call is TraceableCall {
  const { tool, identity, fingerprint, inTurn } = call;
  const { toolCallId: id } = identity;
  if (id === undefined || inTurn === undefined) return false;
  const { per, mode, effect, name } = tool.contract;
  const isBoundByTurn = per === 'turn' && identity.weak !== true && fingerprint === null;
  return isBoundByTurn && mode === 'enforce' && !isRepeatable(effect) && isUnique(id, name);
}

/** Marks have a namespace of their own, so that they are not taken for effects. */
const callsIn = (namespace: string) => `${namespace}${callsSuffix}`;
export const isCallsNamespace = (namespace: string) => namespace.endsWith(callsSuffix);
const callsSuffix = ' (calls)';

/**
 * The mark keeps the turn in which the call was first made; nothing runs under it. Its keys, and those of earlier forms of
 * the contract, are the ones that the call would have in a turn named after its id.
 */
function createMark({ tool, namespace, identity }: Call, inTurnOfId: Call): Call {
  const windowMs = tool.contract.windowMs + longerMs;
  // It must not lapse if its settlement was lost: the next call would take over the mark for its own turn.
  const contract: Contract = { ...tool.contract, dispatch: 'explicit', windowMs, leaseMs: longerMs };
  return inTurnOfId.asMark({ ...tool, contract }, callsIn(namespace), identity);
}

/** The call's record answers from when it is settled, days later if it was in doubt. A mark that outlives it does no harm. */
const longerMs = 30 * 24 * 3_600_000;

/** Versions made from time or chance: one made from a name is the same for the same wish, and the nil UUID is everybody's. */
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[1467][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
/** Letters and digits, but not a word followed by a number. */
const randomEnd = /(?:^|[^a-z0-9])(?=[a-z]*\d)(?=\d*[a-z])(?![a-z]+\d+$)[a-z0-9]{16,}$/i;

/**
 * Whether the id looks like 64 random bits or more. Some models number their calls from the start in every run, others name
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
