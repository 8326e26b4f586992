// Asks the model whether a repeated call is a retry or a new action. The model answers by calling the one tool that semel
// adds. Repeating the call is not an answer, because clients retry by themselves.

import type { ErrorValue } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import type { RecordInfo, Semel } from '../../semel/index.ts';
import { asRecord, type ListedTool, type Reply, type ToolResult } from '../protocol/messages.ts';
import { writable } from '../protocol/numbers.ts';
import { metaNames } from './call-input.ts';
import { isTask, toolErrorPrefix } from './outcome.ts';

export const runAgainName = 'semel_run_again';

/** As `tools/list` shows it. */
export const runAgainTool = {
  name: runAgainName,
  title: 'Run a held-back call again',
  description:
    'Allows a tool call that semel held back to run once more. Call it only when a tool result gave you a ref for it, and ' +
    'only if you mean the call as a new action (or have corrected what made it fail), not to retry it. Then make the same call again.',
  inputSchema: {
    type: 'object',
    properties: { ref: { type: 'string', description: 'the ref that the tool result gave you' } },
    required: ['ref'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
} as const satisfies ListedTool & Record<string, unknown>;

/** A record that would answer a repeat of its call, although the repeat may be a new action. */
export interface Held {
  readonly tool: string;
  readonly record: RecordInfo;
  /** Content fields that are worded differently this time. */
  readonly drift: readonly string[];
  /** The ledger's error, if it has no result. */
  readonly error: ErrorValue | undefined;
}

/** The question comes first, then the stored result. */
export interface Question extends ToolResult {
  readonly content: readonly [{ readonly type: 'text'; readonly text: string }, ...unknown[]];
  readonly _meta: Readonly<Record<string, unknown>>;
}

export interface RunAgain {
  /** Returns the question instead of the tool's result. */
  ask(scope: string, held: Held): Question;
  /** Lets the model answer without a question: it has just seen how the call ended. Returns what to do. */
  offer(scope: string, tool: string, record: Pick<RecordInfo, 'key' | 'ref'>): string;
  /** Undefined if this process has not asked this caller about the ref. */
  allow(scope: string, args: unknown): Promise<ToolResult | undefined>;
}

interface Offer {
  readonly tool: string;
  readonly key: string;
}

/** `canAnswer`: the client can call our tool. */
export function createRunAgain(semel: Semel, canAnswer: () => boolean = () => true): RunAgain {
  /** By caller and ref. Lost with the process; the next process asks again. */
  const offers = new Map<string, Offer>();
  const offerKey = (scope: string, ref: string) => JSON.stringify([scope, ref]);

  function offer(scope: string, tool: string, { key, ref }: Pick<RecordInfo, 'key' | 'ref'>): string {
    if (!canAnswer()) return `tell the user: a person has to allow it (${ref}).`;
    const name = offerKey(scope, ref);
    offers.delete(name);
    offers.set(name, { tool, key });
    if (offers.size > limits.kept) offers.delete(offers.keys().next().value as string);
    return `call ${runAgainName} with ref "${ref}", then make the same call again.`;
  }

  return {
    offer,
    ask(scope, held) {
      const { tool, record, error } = held;
      const how = offer(scope, tool, record);
      const text = writeQuestion(held, how);
      const { content, structuredContent } = asRecord(record.value);
      return {
        content: [{ type: 'text', text }, ...(Array.isArray(content) ? content : [])],
        ...(structuredContent === undefined ? {} : { structuredContent }),
        isError: true,
        resultType: 'complete',
        _meta: {
          [metaNames.question]: { ref: record.ref, at: settledTime(record).toISOString() },
          ...(error === undefined ? {} : { [metaNames.error]: withWayOut(held, error, how) }),
        },
      };
    },
    async allow(scope, args) {
      const { ref } = asRecord(args);
      if (typeof ref !== 'string') return undefined;
      const name = offerKey(scope, ref);
      const offered = offers.get(name);
      if (offered === undefined) return undefined;
      const { tool, key } = offered;
      const allowed = textResult(`${tool} may run once more. Make the same call again now.`);
      const record = await semel.records.get(key);
      if (record === undefined || record.expired) return allowed;
      if (record.ref !== ref || !(await release(semel, record)))
        return {
          ...textResult(`${tool} has run since, or runs now. Make the same call again to see.`),
          isError: true,
        };
      offers.delete(name);
      return allowed;
    },
  };
}

/** Only in the state that the model was asked about. */
async function release(semel: Semel, { key, fence, status }: RecordInfo): Promise<boolean> {
  const seen = `${key}@${fence}`;
  const act = { by: 'the model, through semel mcp', note: 'it means the call as a new action' };
  try {
    if (status === 'unknown') await semel.doubts.resolve(seen, 'runAgain', act);
    else await semel.records.forget(seen, act);
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'RESOLVE_STALE') throw error;
    return false;
  }
}

/** After an error of the tool: `how` to run the same call again, and what to do if it may have been done. */
export function adviseAfterError(how: string, otherwise: string): string {
  return (
    'Other arguments make another call, and it runs. For the same call: if nothing was done, or you have corrected the cause, ' +
    `${how} If it may have been done: ${otherwise}`
  );
}

/** The same advice for a program as the text has for the model. */
function withWayOut({ record }: Held, error: ErrorValue, how: string): ErrorValue {
  if (record.status !== 'unknown') return error;
  return { ...error, correctiveAction: adviseAfterError(how, error.correctiveAction) };
}

/** For a ref that this process never offered. */
export function unknownRefResult(): ToolResult {
  const text =
    'No call was held back under this ref. Make the call itself: if it is held back, you get a ref.';
  return { ...textResult(text), isError: true };
}

/** Adds our tool to the last page of a tool list, if a listed tool can be held back. */
export function addRunAgainTool(
  request: unknown,
  reply: Reply,
  mayBeHeld: (tool: ListedTool) => boolean,
): Reply {
  const { tools, nextCursor } = asRecord(asRecord(reply).result);
  if (!Array.isArray(tools) || (nextCursor ?? undefined) !== undefined) return reply;
  if (tools.some((tool) => asRecord(tool).name === runAgainName)) return reply;
  // The earlier pages are unknown here.
  const isWhole = asRecord(asRecord(request).params).cursor === undefined;
  if (isWhole && !tools.some((tool) => typeof asRecord(tool).name === 'string' && mayBeHeld(tool)))
    return reply;
  const list = { ...(reply as { result: object }).result, tools: [...tools, runAgainTool] };
  return writable({ ...reply, result: list }) as Reply;
}

function writeQuestion({ record, drift }: Held, how: string): string {
  const { value, error, status } = record;
  const at = settledTime(record).toISOString();
  const when = `${at.slice(0, 10)} at ${at.slice(11, 19)} UTC`;
  if (status === 'unknown') {
    const said = shorten((error?.message ?? '').slice(toolErrorPrefix.length));
    return (
      `Not run again. The same call failed on ${when}: ${said}\nIt may have had an effect before it failed: check that first. ` +
      `If nothing was done, or you have corrected the cause, ${how}`
    );
  }
  const differing = drift.length === 0 ? '' : ` (yours differs in ${drift.join(', ')})`;
  return (
    `Not run again. The same call succeeded on ${when}${differing}; ${describeResult(value)}. ` +
    `If this is a retry, it is done: do nothing more. If you mean it as a new action, ${how}`
  );
}

function describeResult(value: unknown): string {
  if (value === undefined) return 'its result was not kept';
  const { task } = asRecord(value);
  return isTask(value as ToolResult) ? `it began the task ${asRecord(task).taskId}` : 'its result follows';
}

function settledTime({ settledAt, updatedAt }: RecordInfo): Date {
  return settledAt ?? updatedAt;
}

function textResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }], resultType: 'complete' };
}

function shorten(text: string): string {
  return text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text;
}
