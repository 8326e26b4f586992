// Who asks, where the program did not say: the thread and the user's last message, as LangGraph keeps them.

import { guessFrom } from '../../guard/index.ts';
import type { Ambient } from '../../semel/index.ts';
import type { CallConfig } from './tool-shape.ts';

interface Message {
  readonly id?: unknown;
  readonly type?: unknown;
  readonly content?: unknown;
}

export function whoAsks({ state, configurable = {} }: CallConfig): Ambient {
  const messages = messagesOf(state);
  const { thread_id: thread, checkpoint_ns: place } = configurable;
  const conversation = thread === undefined || thread === null ? undefined : String(thread);
  const id = messages.findLast(isHuman)?.id;
  // Without a thread nobody keeps the id: a new run has a new one. An agent inside a tool gets its question anew with
  // every plan of the one outside.
  if (conversation !== undefined && typeof id === 'string' && !isNested(place))
    return { conversation, turn: id };
  const guess = guessFrom(messages.map(words), isHuman);
  return conversation === undefined ? guess : { ...guess, conversation };
}

function messagesOf(state: unknown): readonly Message[] {
  const messages = Array.isArray(state) ? state : (state as { messages?: unknown } | undefined)?.messages;
  return Array.isArray(messages) ? messages : [];
}

function isHuman(message: unknown): boolean {
  return (message as Message | null)?.type === 'human';
}

/** Ids are made anew when the same words are said in another run. */
function words({ type, content }: Message): Message {
  return { type, content };
}

/** Each graph on the way down adds its part. */
function isNested(place: unknown): boolean {
  return typeof place === 'string' && place.includes('|');
}

const passing: ReadonlySet<unknown> = new Set(['GraphInterrupt', 'NodeInterrupt', 'ParentCommand']);

/** Control flow of LangGraph: an interrupt, a command to the graph outside. */
export function isControlFlow(error: unknown): boolean {
  const { is_bubble_up, name } = (error ?? {}) as { is_bubble_up?: unknown; name?: unknown };
  return is_bubble_up === true || passing.has(name);
}
