// Reads from a tools/call what its guard needs: args, key, tool call id, identity.

import { handoffMeta } from '../../core/handoff-places.ts';
import { digest } from '../../core/key/key.ts';
import type { FrameworkCall } from '../../guard/index.ts';
import type { Ambient } from '../../semel/index.ts';
import type { ToolCall } from '../protocol/messages.ts';

/** Our fields in `_meta`. */
export const metaNames = {
  /** A hand-off from `semel.handoff()`. */
  context: handoffMeta,
  conversation: 'dev.semel/conversation',
  turn: 'dev.semel/turn',
  key: 'dev.semel/idempotency-key',
  replayed: 'dev.semel/replayed',
  error: 'dev.semel/error',
  /** A repeat is held back; nothing ran. */
  question: 'dev.semel/question',
} as const;

/** Where a call comes from. */
export interface Caller {
  /** Separates the keys of different callers. Contains no colon. */
  readonly scope: string;
  /** Undefined if there is only one client, or the program named the caller. */
  readonly caller?: string | undefined;
  /** Over stdio: a digest of the account that the server's environment names. */
  readonly account?: string | undefined;
  /** A string is a hand-off. */
  readonly identity: Ambient | string;
}

export function readCall(call: ToolCall, { scope }: Caller): FrameworkCall {
  const key = readKey(call, scope);
  return {
    args: readArgs(call, key !== undefined),
    key,
    toolCallId: readToolCallId(call),
    // Without an identity, equal calls of one caller count as one for a while. The conversation stays unknown.
    identity: () => ({ turn: 'unplaced', weak: true }),
  };
}

/** From the call, otherwise from its connection. A call cannot name its caller: anybody could claim to be anyone. */
export function readIdentity({ params }: ToolCall, { identity }: Caller): Ambient | string {
  const {
    [metaNames.context]: context,
    [metaNames.conversation]: conversation,
    [metaNames.turn]: turn,
  } = params._meta ?? {};
  if (context !== undefined) return String(context);
  const own = { conversation, turn } as Ambient;
  if (conversation !== undefined) return own;
  return own.turn === undefined || typeof identity === 'string' ? identity : { ...identity, turn: own.turn };
}

/**
 * A further round brings answers and is an intent of its own; retrying that round is the same intent. Under the caller's own
 * key all rounds are one intent.
 */
function readArgs({ params }: ToolCall, isKeyed: boolean): unknown {
  const { arguments: args = {}, inputResponses, requestState } = params;
  const said = escapeNames(args);
  if (isKeyed || (inputResponses === undefined && requestState === undefined)) return said;
  return {
    ...(isObject(said) ? said : { [argumentsName]: said }),
    [roundName]: { inputResponses, requestState },
  };
}

const argumentsName = '«arguments»';
const roundName = '«round»';
/** With any number of marks. */
const reservedNames = /^«+(arguments|round)»+$/;

/** A client's arguments may have the names reserved here: they get another pair of marks. */
function escapeNames(args: unknown): unknown {
  return renameReserved(args, (name) => `«${name}»`);
}

/** The tool's own args, as the client named them. */
export function originalArgs(args: unknown): unknown {
  if (!isObject(args)) return args;
  const { [argumentsName]: notAnObject, [roundName]: _, ...own } = args as Record<string, unknown>;
  return argumentsName in args ? notAnObject : renameReserved(own, (name) => name.slice(1, -1));
}

function renameReserved(args: unknown, rename: (name: string) => string): unknown {
  if (!isObject(args) || !Object.keys(args).some((name) => reservedNames.test(name))) return args;
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [reservedNames.test(name) ? rename(name) : name, value]),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readKey({ params }: ToolCall, scope: string): string | undefined {
  const key = params.idempotencyKey ?? params._meta?.[metaNames.key];
  if (typeof key !== 'string' || key === '') return undefined;
  return key.length <= 200 && !/\p{Cc}/u.test(key) ? `${scope}:=${key}` : `${scope}:~${digest('key', key)}`;
}

/** Clients that pass the model's tool call id each use a name of their own for it. */
function readToolCallId({ params }: ToolCall): string | undefined {
  for (const [name, value] of Object.entries(params._meta ?? {}))
    if (
      /tool_?(use|call)_?id$/i.test(name) &&
      typeof value === 'string' &&
      /^[\x21-\x7e]{1,200}$/.test(value)
    )
      return value;
  return undefined;
}
