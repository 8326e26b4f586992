// What a tools/call says of itself: its args, its key, who asks.

import { handoffMeta } from '../../core/handoff-places.ts';
import { digest } from '../../core/key/key.ts';
import type { FrameworkCall } from '../../guard/index.ts';
import type { Ambient } from '../../semel/index.ts';
import type { ToolCall } from '../protocol/messages.ts';

/** Our words in `_meta`, under a name that is ours. */
export const metaNames = {
  /** A hand-off, as `semel.handoff()` gives it. */
  context: handoffMeta,
  conversation: 'dev.semel/conversation',
  turn: 'dev.semel/turn',
  key: 'dev.semel/idempotency-key',
  replayed: 'dev.semel/replayed',
  error: 'dev.semel/error',
  /** A repeat is held back, and nothing was run. */
  question: 'dev.semel/question',
} as const;

/** Where a call comes from, besides what it says itself. */
export interface Caller {
  /** Keys of one caller mean nothing to another. Without a colon. */
  readonly scope: string;
  /** Whose call it is; undefined: there is one client only, or the program has said it. */
  readonly caller?: string | undefined;
  /** A string is a hand-off. */
  readonly identity: Ambient | string;
}

export function readCall(call: ToolCall, { scope }: Caller): FrameworkCall {
  const key = keyOf(call, scope);
  return {
    args: argsOf(call, key !== undefined),
    key,
    toolCallId: toolCallIdOf(call),
    // Nobody says more: then it is like all others of its caller and its words, for a while. Which conversation it is
    // cannot be told.
    identity: () => ({ turn: 'unplaced', weak: true }),
  };
}

/** What the call says of who asks, else what its caller said. Whose call it is, it cannot say: anybody could. */
export function identityOf({ params }: ToolCall, { identity }: Caller): Ambient | string {
  const {
    [metaNames.context]: context,
    [metaNames.conversation]: conversation,
    [metaNames.turn]: turn,
  } = params._meta ?? {};
  if (context !== undefined) return String(context);
  const said = { conversation, turn } as Ambient;
  if (conversation !== undefined) return said;
  return turn === undefined || typeof identity === 'string' ? identity : { ...identity, ...given(said) };
}

function given({ turn }: Ambient): Ambient {
  return turn === undefined ? {} : { turn };
}

/**
 * A further round brings answers: it is an intent of its own, and a retry of it is the same one. Under a key of the caller
 * all rounds are one intent.
 */
function argsOf({ params }: ToolCall, isKeyed: boolean): unknown {
  const { arguments: args = {}, inputResponses, requestState } = params;
  const said = withOwnNames(args);
  if (isKeyed || (inputResponses === undefined && requestState === undefined)) return said;
  return {
    ...(isObject(said) ? said : { [argumentsName]: said }),
    [roundName]: { inputResponses, requestState },
  };
}

const argumentsName = '«arguments»';
const roundName = '«round»';
/** However often it is marked. */
const ourNames = /^«+(arguments|round)»+$/;

/** A client may have arguments of the names that are ours here: they get a second pair of marks. */
function withOwnNames(args: unknown): unknown {
  return renamed(args, (name) => `«${name}»`);
}

/** The args of the tool itself, as its client named them. */
export function withoutRound(args: unknown): unknown {
  if (!isObject(args)) return args;
  const { [argumentsName]: notAnObject, [roundName]: _, ...own } = args as Record<string, unknown>;
  return argumentsName in args ? notAnObject : renamed(own, (name) => name.slice(1, -1));
}

function renamed(args: unknown, rename: (name: string) => string): unknown {
  if (!isObject(args) || !Object.keys(args).some((name) => ourNames.test(name))) return args;
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [ourNames.test(name) ? rename(name) : name, value]),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function keyOf({ params }: ToolCall, scope: string): string | undefined {
  const key = params.idempotencyKey ?? params._meta?.[metaNames.key];
  if (typeof key !== 'string' || key === '') return undefined;
  return key.length <= 200 && !/\p{Cc}/u.test(key) ? `${scope}:=${key}` : `${scope}:~${digest('key', key)}`;
}

/** Clients that tell which call of the model it is do so under names of their own. */
function toolCallIdOf({ params }: ToolCall): string | undefined {
  for (const [name, value] of Object.entries(params._meta ?? {}))
    if (
      /tool_?(use|call)_?id$/i.test(name) &&
      typeof value === 'string' &&
      /^[\x21-\x7e]{1,200}$/.test(value)
    )
      return value;
  return undefined;
}
