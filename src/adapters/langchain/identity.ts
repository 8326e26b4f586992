// The identity, if the program named none: LangGraph's thread and the user's last message.

import { type Guess, guessIdentity } from '../../guard/index.ts';
import { waitUntilSaved } from './checkpoint.ts';
import type { CallConfig } from './tool-shape.ts';

interface Message {
  readonly id?: unknown;
  readonly type?: unknown;
  readonly content?: unknown;
  readonly tool_calls?: readonly unknown[];
  readonly additional_kwargs?: Readonly<Record<string, unknown>>;
}

export function findIdentity(config: CallConfig): Guess | Promise<Guess> {
  const { state, configurable = {}, toolCall, signal, durability, checkpointDuring } = config;
  const messages = messagesOf(state);
  const { thread_id: thread, checkpoint_ns: place, __pregel_checkpointer: checkpointer } = configurable;
  const conversation = thread === undefined || thread === null ? undefined : String(thread);
  const id = lastQuestion(messages)?.id;
  // Checkpoints that are written at the exit do not exist if the process dies: the same words then come back under another id.
  const isKept = checkpointer !== undefined && durability !== 'exit' && checkpointDuring !== false;
  // Unless its thread is kept, a message gets a new random id in each run. A nested agent gets a new question with every plan
  // of the outer one.
  const isRandom = typeof id === 'string' && randomId.test(id);
  const isStableId = typeof id === 'string' && !isNested(place) && (isKept || !isRandom);
  if (conversation !== undefined && isStableId) {
    const known = { conversation, turn: id };
    const saving = isRandom ? waitUntilSaved(configurable, durability, signal) : undefined;
    return saving === undefined ? known : saving.then(() => known);
  }
  // A summary changes the words before the question in the middle of a run.
  const guess = messages.some(isSummary)
    ? {}
    : guessIdentity(messages, {
        isUser: isHuman,
        callsIn,
        first: toolCall?.id,
        wordsOf: withoutId,
      });
  return conversation === undefined ? guess : { ...guess, conversation };
}

/** As LangGraph makes them. */
const randomId = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;

/** The user's last message. If the same words were repeated before an answer, the run is a retry: the first of them counts. */
function lastQuestion(messages: readonly Message[]): Message | undefined {
  let last: Message | undefined;
  for (const message of messages.toReversed()) {
    if (last !== undefined && isAnswer(message)) break;
    if (!isHuman(message)) continue;
    if (last !== undefined && JSON.stringify(message.content) !== JSON.stringify(last.content)) break;
    last = message;
  }
  return last;
}

function isAnswer({ type, tool_calls: calls = [] }: Message): boolean {
  return type === 'ai' && calls.length === 0;
}

function messagesOf(state: unknown): readonly Message[] {
  const messages = Array.isArray(state) ? state : (state as { messages?: unknown } | undefined)?.messages;
  return Array.isArray(messages) ? messages : [];
}

function isHuman(message: unknown): boolean {
  return (message as Message | null)?.type === 'human' && !isSummary(message as Message);
}

/**
 * `summarizationMiddleware` replaces messages with a human message under the id of the thread's first one. It is not a question:
 * taken for one, a call would belong to the first turn.
 */
function isSummary(message: Message | null): boolean {
  return message?.additional_kwargs?.lc_source === 'summarization';
}

/** The message that asks for this call is among them. */
function callsIn({ tool_calls: calls = [] }: Message): readonly unknown[] {
  return calls.map((call) => (call as { id?: unknown } | null)?.id);
}

/** Ids change when the same words are sent in another run. */
function withoutId({ type, content }: Message): Message {
  return { type, content };
}

/** Each graph on the way down adds its part. */
function isNested(place: unknown): boolean {
  return typeof place === 'string' && place.includes('|');
}

const passing: ReadonlySet<unknown> = new Set(['GraphInterrupt', 'NodeInterrupt', 'ParentCommand']);

/** Control flow of LangGraph: an interrupt, or a command to the parent graph. */
export function isControlFlow(error: unknown): boolean {
  const { is_bubble_up, name } = (error ?? {}) as { is_bubble_up?: unknown; name?: unknown };
  return is_bubble_up === true || passing.has(name);
}
