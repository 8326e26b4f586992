// What the caller of a guarded tool gets: the server's own answer, the kept one, or what is known instead.

import type { ErrorValue } from '../../core/errors.ts';
import type { Receipt } from '../../core/receipt.ts';
import type { Answer } from '../../guard/index.ts';
import type { ErrorMeaning } from '../policy/policies.ts';
import { errorIn, type Reply, type RpcError, type ToolCall, type ToolResult } from '../protocol/messages.ts';
import { metaNames } from './asked.ts';
import { badParams, endedWords, type Finished, hasEnded, isTask, isTurnedAway, textOf } from './outcome.ts';

export interface ReplyTerms {
  readonly errors: ErrorMeaning;
  /** What the model does to have this very call run once more. */
  readonly howToRepeat: (receipt: Receipt) => string;
}

/** The server's own answer, unchanged, where this call ran it and it landed; otherwise what is known. */
export function told(call: ToolCall, answer: Answer, said: Reply | undefined, terms: ReplyTerms): Reply {
  const { id, params } = call;
  if (answer.ok) {
    if (answer.note === undefined && said !== undefined) return said;
    const result = answer.value as ToolResult;
    const isReplayed = said === undefined;
    // Whoever knows of tasks asks for this one's end, and reads nothing else.
    const isHandle = isTask(result) && (params.task !== undefined || result.resultType === 'task');
    return { jsonrpc: '2.0', id, result: withNote(result, isHandle ? undefined : answer.note, isReplayed) };
  }
  const own = said === undefined ? undefined : errorIn(said);
  const error = {
    ...answer.error,
    ...adviceOn(call, said, answer, terms),
  };
  if (own !== undefined) return { jsonrpc: '2.0', id, error: withData(own, error) };
  if (said !== undefined)
    return {
      jsonrpc: '2.0',
      id,
      result: marked(
        (said as Finished).result,
        error,
        error.code === 'IN_DOUBT' ? inDoubtNote(error) : undefined,
      ),
    };
  if (error.code === 'KEY_CONFLICT') return { jsonrpc: '2.0', id, error: conflict(error) };
  const text = JSON.stringify(error);
  return {
    jsonrpc: '2.0',
    id,
    result: marked({ content: [{ type: 'text', text }], isError: true, resultType: 'complete' }, error),
  };
}

const ofArgs = { correctiveAction: 'Nothing was done. Correct the arguments.' };

/** What the caller of this very call can do, where that is more than the ledger knows. */
function adviceOn(
  call: ToolCall,
  said: Reply | undefined,
  { error, receipt }: Extract<Answer, { readonly ok: false }>,
  { errors, howToRepeat }: ReplyTerms,
): Pick<ErrorValue, 'correctiveAction'> | undefined {
  if (said !== undefined && isOfArgs(call, said)) return ofArgs;
  const { code, correctiveAction, message } = error;
  // A call that shared the execution has no answer of the server, but the record has its words.
  const isEnded = said === undefined ? message.includes(`(${endedWords}`) : hasEnded(said);
  if (code !== 'IN_DOUBT' || errors !== 'ask' || !isEnded || receipt === undefined) return undefined;
  return {
    correctiveAction:
      'Other arguments make another call, and it runs. For the same call: if nothing was done, or you have corrected the cause, ' +
      `${howToRepeat(receipt)} Otherwise: ${correctiveAction}`,
  };
}

/** The server did not take the args: the same call would be turned away again. */
function isOfArgs({ params }: ToolCall, said: Reply): boolean {
  const error = errorIn(said);
  return error === undefined
    ? isTurnedAway(params.name, textOf((said as Finished).result))
    : error.code === badParams;
}

function withNote(result: ToolResult, note: string | undefined, isReplayed: boolean): ToolResult {
  return {
    ...result,
    ...(note === undefined ? {} : { content: contentWith(result, note) }),
    ...(isReplayed ? { _meta: { ...result._meta, [metaNames.replayed]: true } } : {}),
  };
}

function marked(result: ToolResult, error: ErrorValue, note?: string): ToolResult {
  return {
    ...result,
    content: note === undefined ? (result.content ?? []) : contentWith(result, note),
    _meta: { ...result._meta, [metaNames.error]: error },
  };
}

/** Content that is not a list stays as it is: nobody could tell the note from it. */
function contentWith({ content }: ToolResult, note: string): readonly unknown[] {
  const blocks = content ?? [];
  return Array.isArray(blocks) ? [...blocks, { type: 'text', text: note }] : blocks;
}

function inDoubtNote({ correctiveAction }: ErrorValue): string {
  return `It may have had an effect before it failed, so the same call is not run again. ${correctiveAction}`;
}

function withData(rpc: RpcError, error: ErrorValue): RpcError {
  const data = rpc.data === undefined ? {} : typeof rpc.data === 'object' ? rpc.data : { detail: rpc.data };
  return { ...rpc, data: { ...data, [metaNames.error]: error } };
}

/** As SEP-3182 has it. */
function conflict(error: ErrorValue): RpcError {
  return {
    code: -32602,
    message: error.message,
    data: { type: 'idempotency_key_conflict', [metaNames.error]: error },
  };
}
