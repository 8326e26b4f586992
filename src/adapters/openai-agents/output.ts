// A call's output. The SDK has one output for both the code and the model, which reads it as text or as parts. So a plain
// object carries its text for the model in non-enumerable fields.

import type { ErrorValue } from '../../core/errors.ts';
import type { Answer } from '../../guard/index.ts';

/** An output schema has room only for the value: no note, and errors are thrown. */
export function toOutput(answer: Answer, outputSchema: unknown): unknown {
  if (!answer.ok) {
    if (outputSchema !== undefined) throw toError(answer.error);
    return answer.error;
  }
  const { value, note } = answer;
  return note === undefined || outputSchema !== undefined ? value : withNote(value, note);
}

function withNote(value: unknown, note: string): unknown {
  // Chat Completions joins the parts without a space.
  const block = { type: 'text', text: `\n\n${note}` };
  if (value === undefined) return note;
  if (typeof value === 'string') return `${value}\n\n${note}`;
  if (isPlain(value) && !('type' in value) && !('text' in value)) {
    const text = `${toText(value)}\n\n${note}`;
    return Object.defineProperties({ ...value }, { type: { value: 'text' }, text: { value: text } });
  }
  const parts = Array.isArray(value) ? value : [value];
  if (parts.length > 0 && parts.every(isPart)) return [...parts, block];
  return [{ type: 'text', text: toText(value) }, block];
}

/** A bigint is the one kind of value that JSON refuses. */
function toText(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each));
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Text, an image or a file, in the SDK's own form. */
function isPart(value: unknown): boolean {
  const type = (value as { type?: unknown } | null)?.type;
  return type === 'text' || type === 'image' || type === 'file';
}

function toError(error: ErrorValue): Error {
  return Object.assign(new Error(error.message), error);
}
