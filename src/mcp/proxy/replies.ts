// Builds the reply to a guarded call: the server's own reply, the stored result, or an error with advice for the model.

import type { ErrorValue } from '../../core/errors.ts';
import type { Receipt } from '../../core/receipt.ts';
import { type Answer, isInputRejection } from '../../guard/index.ts';
import type { ErrorMeaning } from '../policy/policies.ts';
import {
  type Reply,
  type RpcError,
  rpcErrorIn,
  type ToolCall,
  type ToolResult,
} from '../protocol/messages.ts';
import { metaNames } from './call-input.ts';
import {
  badParams,
  isTask,
  isToolFailure,
  type ResultReply,
  resultText,
  toolErrorPrefix,
} from './outcome.ts';
import { adviseAfterError } from './run-again.ts';

export interface ReplyTerms {
  readonly errors: ErrorMeaning;
  /** Tells the model how to run this call again. */
  readonly howToRepeat: (receipt: Receipt) => string;
}

/** Returns the server's reply unchanged if this call ran and landed. */
export function buildReply(
  call: ToolCall,
  answer: Answer,
  serverReply: Reply | undefined,
  terms: ReplyTerms,
): Reply {
  const { id, params } = call;
  if (answer.ok) {
    if (answer.note === undefined && serverReply !== undefined) return serverReply;
    const result = answer.value as ToolResult;
    const isReplayed = serverReply === undefined;
    // A client that knows tasks polls this one and reads nothing else.
    const isHandle = isTask(result) && (params.task !== undefined || result.resultType === 'task');
    return { jsonrpc: '2.0', id, result: withNote(result, isHandle ? undefined : answer.note, isReplayed) };
  }
  const own = serverReply === undefined ? undefined : rpcErrorIn(serverReply);
  const error = {
    ...answer.error,
    ...adviceFor(call, serverReply, answer, terms),
  };
  if (own !== undefined) return { jsonrpc: '2.0', id, error: withErrorData(own, error) };
  if (serverReply !== undefined)
    return {
      jsonrpc: '2.0',
      id,
      result: withError(
        (serverReply as ResultReply).result,
        error,
        error.code === 'IN_DOUBT' ? inDoubtNote(error) : undefined,
      ),
    };
  if (error.code === 'KEY_CONFLICT') return { jsonrpc: '2.0', id, error: keyConflict(error) };
  const text = JSON.stringify(error);
  return {
    jsonrpc: '2.0',
    id,
    result: withError({ content: [{ type: 'text', text }], isError: true, resultType: 'complete' }, error),
  };
}

const argsAdvice = { correctiveAction: 'Nothing was done. Correct the arguments.' };

/** Advice that depends on this server reply, which the ledger does not know. */
function adviceFor(
  call: ToolCall,
  serverReply: Reply | undefined,
  { error, receipt }: Extract<Answer, { readonly ok: false }>,
  { errors, howToRepeat }: ReplyTerms,
): Pick<ErrorValue, 'correctiveAction'> | undefined {
  if (serverReply !== undefined && isArgsError(call, serverReply)) return argsAdvice;
  const { code, correctiveAction, message } = error;
  // A call that shared the execution has no reply of its own; the record holds the error message.
  const isEnded =
    serverReply === undefined ? message.includes(`: ${toolErrorPrefix}`) : isToolFailure(serverReply);
  if (code !== 'IN_DOUBT' || errors !== 'ask' || !isEnded || receipt === undefined) return undefined;
  return { correctiveAction: adviseAfterError(howToRepeat(receipt), correctiveAction) };
}

/** The server rejected the args and would reject the same call again. */
function isArgsError({ params }: ToolCall, serverReply: Reply): boolean {
  const error = rpcErrorIn(serverReply);
  return error === undefined
    ? isInputRejection(params.name, resultText((serverReply as ResultReply).result))
    : error.code === badParams;
}

function withNote(result: ToolResult, note: string | undefined, isReplayed: boolean): ToolResult {
  return {
    ...result,
    ...(note === undefined ? {} : { content: contentWith(result, note) }),
    ...(isReplayed ? { _meta: { ...result._meta, [metaNames.replayed]: true } } : {}),
  };
}

function withError(result: ToolResult, error: ErrorValue, note?: string): ToolResult {
  return {
    ...result,
    content: note === undefined ? (result.content ?? []) : contentWith(result, note),
    _meta: { ...result._meta, [metaNames.error]: error },
  };
}

/** Content that is not a list stays unchanged: a note could not be distinguished from it. */
function contentWith({ content }: ToolResult, note: string): readonly unknown[] {
  const blocks = content ?? [];
  return Array.isArray(blocks) ? [...blocks, { type: 'text', text: note }] : blocks;
}

function inDoubtNote({ correctiveAction }: ErrorValue): string {
  return `It may have had an effect before it failed, so the same call is not run again. ${correctiveAction}`;
}

function withErrorData(rpc: RpcError, error: ErrorValue): RpcError {
  const data = rpc.data === undefined ? {} : typeof rpc.data === 'object' ? rpc.data : { detail: rpc.data };
  return { ...rpc, data: { ...data, [metaNames.error]: error } };
}

/** As in SEP-3182. */
function keyConflict(error: ErrorValue): RpcError {
  return {
    code: -32602,
    message: error.message,
    data: { type: 'idempotency_key_conflict', [metaNames.error]: error },
  };
}
