// The message that the model and the program get. LangChain makes it with the current call's id; this file chooses its content,
// status, artifact and metadata.

import type { Answer } from '../../guard/index.ts';
import { type StoredResult, toResult } from './stored-output.ts';

/** What a call's message holds besides its content. */
export interface MessageExtras {
  /** The tool's own return value, if it ran for this call. */
  output?: { readonly itself: unknown };
  status?: unknown;
  artifact?: unknown;
  note?: string;
}

/** The return value of `_call`, in the form that LangChain turns into the right message. */
export function toOutput(
  answer: Answer,
  isPair: boolean,
  isMessage: boolean,
  extras: MessageExtras,
): unknown {
  if (!answer.ok) {
    extras.status = 'error';
    const text = isMessage ? JSON.stringify(answer.error) : answer.error;
    return isPair ? [text, answer.error] : text;
  }
  const { value, note } = answer;
  if (note === undefined && extras.output !== undefined) return extras.output.itself;
  const result: StoredResult = toResult(value, isPair);
  extras.status = result.status;
  extras.artifact = result.artifact;
  if (!isMessage || note === undefined) return isPair ? [result.content, result.artifact] : result.content;
  extras.note = note;
  const content = withNote(result.content, note);
  return isPair ? [content, result.artifact] : content;
}

interface ToolMessage extends StoredResult {
  status?: unknown;
  artifact?: unknown;
  metadata?: Readonly<Record<string, unknown>>;
}

export function finish(message: unknown, { status, artifact, note }: MessageExtras): unknown {
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
