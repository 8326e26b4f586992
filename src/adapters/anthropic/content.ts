// What the model gets of a call, as content blocks: the value first, then a note as a block of its own, so that a program can
// tell them apart.

import type { Answer } from '../../guard/index.ts';
import type { Content, Outcome } from './runnable-tool.ts';

export function toOutcome(answer: Answer): Outcome {
  if (!answer.ok) return { content: JSON.stringify(answer.error), isError: true };
  const { value, note } = answer;
  const content = toContent(value);
  return { content: note === undefined ? content : withNote(content, note), isError: false };
}

/** The SDK takes a text or blocks, and nothing else. */
export function toContent(value: unknown): Content {
  if (typeof value === 'string' || isBlocks(value)) return value;
  return value === undefined ? '' : JSON.stringify(value, plain);
}

/** The one kind of value that JSON refuses. */
function plain(_field: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** An SDK error with its own content keeps it. */
export function errorContent(error: unknown): Content {
  if (!(error instanceof Error)) return `Error: ${error}`;
  if (error.name === 'ToolError' && 'content' in error) return toContent(error.content);
  return `Error: ${error.message}`;
}

function withNote(content: Content, note: string): Content {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  // The API takes no empty text.
  return [...blocks.filter(({ text }) => text !== ''), { type: 'text', text: note }];
}

const kinds: readonly unknown[] = ['text', 'image', 'document', 'search_result', 'tool_reference'];

function isBlocks(value: unknown): value is Content & object {
  return Array.isArray(value) && value.length > 0 && value.every((block) => kinds.includes(block?.type));
}
