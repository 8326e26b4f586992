// The message that a model and a program see of a result. LangChain makes it, with the id of the call that is answered
// now; here its words are chosen, and what only a message can say is put into it.

import type { Answer } from '../../guard/index.ts';
import { type Said, saidOf } from './kept.ts';

/** What is said of one call besides its content. */
export interface Telling {
  /** What the tool itself returned, if it ran for this call. */
  output?: { readonly itself: unknown };
  status?: unknown;
  artifact?: unknown;
  note?: string;
}

/** What `_call` returns, so that LangChain makes the right message of it. */
export function told(answer: Answer, isPair: boolean, isMessage: boolean, telling: Telling): unknown {
  if (!answer.ok) {
    telling.status = 'error';
    const text = isMessage ? JSON.stringify(answer.error) : answer.error;
    return isPair ? [text, answer.error] : text;
  }
  const { value, note } = answer;
  if (note === undefined && telling.output !== undefined) return telling.output.itself;
  const said: Said = saidOf(value, isPair);
  telling.status = said.status;
  telling.artifact = said.artifact;
  if (!isMessage || note === undefined) return isPair ? [said.content, said.artifact] : said.content;
  telling.note = note;
  const content = withNote(said.content, note);
  return isPair ? [content, said.artifact] : content;
}

interface ToolMessage extends Said {
  status?: unknown;
  artifact?: unknown;
  metadata?: Readonly<Record<string, unknown>>;
}

export function finish(message: unknown, { status, artifact, note }: Telling): unknown {
  if (!isToolMessage(message)) return message;
  if (status !== undefined) message.status = status;
  if (artifact !== undefined) message.artifact = artifact;
  if (note !== undefined) message.metadata = { ...message.metadata, semel: note };
  return message;
}

/** What the tool returned, from its message: the artifact where there is one, else the content, without our note. */
export function resultOf(message: { readonly content: unknown }): unknown {
  const { artifact, content, metadata } = message as ToolMessage;
  if (artifact !== undefined) return artifact;
  const note = metadata?.semel;
  if (typeof content !== 'string')
    return Array.isArray(content) && note !== undefined ? content.slice(0, -1) : content;
  const text = typeof note === 'string' ? content.slice(0, -note.length).trimEnd() : content;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A text stays a text: not every provider takes a list for the result of a tool. */
function withNote(content: unknown, note: string): unknown {
  if (Array.isArray(content) && content.every(isBlock)) return [...content, { type: 'text', text: note }];
  const text = typeof content === 'string' ? content : (JSON.stringify(content) ?? '');
  return text === '' ? note : `${text}\n\n${note}`;
}

function isBlock(part: unknown): boolean {
  return typeof part === 'object' && part !== null && 'type' in part;
}

function isToolMessage(message: unknown): message is ToolMessage {
  return typeof message === 'object' && message !== null && 'type' in message && message.type === 'tool';
}
