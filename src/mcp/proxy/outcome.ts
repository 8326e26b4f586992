// Interprets the server's reply to a call: returns a result to keep, or throws what became of the call.

import { MaybeLanded, NotLanded, Rejected } from '../../core/signals.ts';
import { isInputRejection } from '../../guard/index.ts';
import type { ErrorMeaning } from '../policy/policies.ts';
import { asRecord, type Reply, rpcErrorIn, type ToolCall, type ToolResult } from '../protocol/messages.ts';
import { metaNames } from './call-input.ts';

/** Starts the error message in the record of a tool that itself reported an error; no reply was lost. */
export const toolErrorPrefix = 'The tool ended with an error: ';

/** The tool asks its caller for input and has not run yet, so there is no result to keep. */
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

export type ResultReply = Extract<Reply, { readonly result: unknown }>;

/** The server did not reach the tool: bad request, unknown method, bad params, visit a page first. */
export const badParams = -32602;
const refusedCodes: readonly number[] = [-32600, -32601, badParams, -32042];

/** Some servers send this when a handler throws; others send a result with `isError`. */
const internalError = -32603;

export function readResult({ params }: ToolCall, reply: Reply, errors: ErrorMeaning): ToolResult {
  const error = rpcErrorIn(reply);
  if (error !== undefined) {
    const { code, message } = error;
    if (refusedCodes.includes(code)) throw new NotLanded(message);
    throw new MaybeLanded(errors === 'ask' && code === internalError ? toolErrorPrefix + message : message);
  }
  const { result } = reply as ResultReply;
  // A started task is not started again: its handle answers equal calls too.
  if (isTask(result)) return result;
  if ((result.resultType ?? 'complete') !== 'complete') throw new Unfinished(reply);
  // Another semel proxy behind this one held it back.
  if (asRecord(result._meta)[metaNames.question] !== undefined) throw new Unfinished(reply);
  if (result.isError !== true) return result;
  const words = resultText(result);
  if (errors === 'not-landed' || isInputRejection(params.name, words)) throw new NotLanded(words);
  if (errors === 'refused') throw new Rejected(words);
  throw new MaybeLanded(errors === 'ask' ? toolErrorPrefix + words : words);
}

/** The server says that the tool ran and failed. What it did before failing is unknown. */
export function isToolFailure(reply: Reply): boolean {
  const error = rpcErrorIn(reply);
  return error === undefined ? (reply as ResultReply).result.isError === true : error.code === internalError;
}

/** The tool itself answered or failed; the server reached it. */
export function isToolReply(reply: Reply): boolean {
  return rpcErrorIn(reply) === undefined || isToolFailure(reply);
}

/** Some servers write every field and leave it null. */
export function isTask({ resultType, task, isError }: ToolResult): boolean {
  return resultType === 'task' || (typeof task === 'object' && task !== null && isError !== true);
}

export function resultText({ content }: ToolResult): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => asRecord(block).text).filter((text) => typeof text === 'string');
  return texts.join('\n').slice(0, 2_000) || 'The tool answered with an error.';
}
