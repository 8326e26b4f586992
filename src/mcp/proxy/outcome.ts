// What the server's reply to a call means: a result to keep, or an ending that says what became of the call.

import { MaybeLanded, NotLanded, Rejected } from '../../core/signals.ts';
import type { ErrorMeaning } from '../policy/policies.ts';
import { errorIn, fieldsOf, type Reply, type ToolCall, type ToolResult } from '../protocol/messages.ts';
import { metaNames } from './asked.ts';

/** Before the words of a tool that ended with an error, in its record: nothing was lost on the way. */
export const endedWords = 'The tool ended with an error: ';

/** The tool has not run yet: it asks its caller. That is no result to keep. */
class Unfinished extends Error {
  readonly reply: Reply;
  constructor(reply: Reply) {
    super('The call goes on in another round.');
    this.reply = reply;
  }
}

export function isUnfinished(error: unknown): error is Unfinished {
  return error instanceof Unfinished;
}

/** A reply without an error. */
export type Finished = Extract<Reply, { readonly result: unknown }>;

/** Bad request, unknown method, bad params, first visit a page: the server did not get as far as the tool. */
export const badParams = -32602;
const refusedCodes: readonly number[] = [-32600, -32601, badParams, -32042];

/** Servers whose handlers throw say so by this code, where others answer with a result that is marked as an error. */
const internalError = -32603;

export function resultOf({ params }: ToolCall, reply: Reply, errors: ErrorMeaning): ToolResult {
  const error = errorIn(reply);
  if (error !== undefined) {
    const { code, message } = error;
    if (refusedCodes.includes(code)) throw new NotLanded(message);
    throw new MaybeLanded(errors === 'ask' && code === internalError ? endedWords + message : message);
  }
  const { result } = reply as Finished;
  // What was begun as a task is not begun again: its handle is the answer, also to whoever asks for the same.
  if (isTask(result)) return result;
  if ((result.resultType ?? 'complete') !== 'complete') throw new Unfinished(reply);
  // Another proxy behind this one has held it back.
  if (fieldsOf(result._meta)[metaNames.question] !== undefined) throw new Unfinished(reply);
  if (result.isError !== true) return result;
  const words = textOf(result);
  if (errors === 'not-landed' || isTurnedAway(params.name, words)) throw new NotLanded(words);
  if (errors === 'refused') throw new Rejected(words);
  throw new MaybeLanded(errors === 'ask' ? endedWords + words : words);
}

/** The server's own word that the tool ran to its end, and failed. What it did before is not known. */
export function hasEnded(reply: Reply): boolean {
  const error = errorIn(reply);
  return error === undefined ? isMarked(reply) : error.code === internalError;
}

/** A server may answer with no object at all. */
function isMarked(reply: Reply): boolean {
  return fieldsOf((reply as Finished).result).isError === true;
}

/** The tool itself has answered, or failed: the server got as far as that. */
export function isOfTool(reply: Reply): boolean {
  return errorIn(reply) === undefined || hasEnded(reply);
}

/** Servers of the SDK say so in a result, where others answer with an error: no handler has run. */
export function isTurnedAway(tool: string, words: string): boolean {
  return (
    /^(MCP error -32602: )?Input validation error: Invalid arguments for tool /.test(words) &&
    words.includes(` for tool ${tool}: `)
  );
}

/** Some servers write each field that there is, and leave it empty. */
export function isTask({ resultType, task, isError }: ToolResult): boolean {
  return resultType === 'task' || (typeof task === 'object' && task !== null && isError !== true);
}

export function textOf({ content }: ToolResult): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => fieldsOf(block).text).filter((text) => typeof text === 'string');
  return texts.join('\n').slice(0, 2_000) || 'The tool answered with an error.';
}
