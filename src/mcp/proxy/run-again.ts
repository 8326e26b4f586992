// A call that already ran is made again, and nobody can tell a retry from a new wish: the model is asked. It answers by
// calling the one tool that semel adds. Making the same call once more is no answer, because clients retry by themselves.

import type { ErrorValue } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import type { RecordInfo, Semel } from '../../semel/index.ts';
import { fieldsOf, type ListedTool, type Reply, type ToolResult } from '../protocol/messages.ts';
import { writable } from '../protocol/numbers.ts';
import { metaNames } from './asked.ts';
import { endedWords, isTask } from './outcome.ts';

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

/** A record that answers for a repeat of its call, though the repeat may be a new wish. */
export interface Held {
  readonly tool: string;
  readonly record: RecordInfo;
  /** Content fields that are worded differently this time. */
  readonly drift: readonly string[];
  /** What the ledger says of it, where that is not the result. */
  readonly error: ErrorValue | undefined;
}

/** The question comes first, then the result that there is. */
export interface Question extends ToolResult {
  readonly content: readonly [{ readonly type: 'text'; readonly text: string }, ...unknown[]];
  readonly _meta: Readonly<Record<string, unknown>>;
}

export interface RunAgain {
  /** The question, in place of the tool's result. */
  ask(scope: string, held: Held): Question;
  /** Lets the model answer before it was asked: it has just seen how the call ended. */
  offer(scope: string, tool: string, record: Pick<RecordInfo, 'key' | 'ref'>): string;
  /** Undefined: this process has not asked this caller about such a ref. */
  allow(scope: string, args: unknown): Promise<ToolResult | undefined>;
}

interface Offer {
  readonly tool: string;
  readonly key: string;
}

/** `canAnswer`: the client can call our tool. */
export function createRunAgain(semel: Semel, canAnswer: () => boolean = () => true): RunAgain {
  /** By caller and ref. Lost with the process: then the same call is asked about again, under a ref of that process. */
  const offers = new Map<string, Offer>();
  const nameOf = (scope: string, ref: string) => JSON.stringify([scope, ref]);

  function offer(scope: string, tool: string, { key, ref }: Pick<RecordInfo, 'key' | 'ref'>): string {
    if (!canAnswer()) return `tell the user: a person has to allow it (${ref}).`;
    const name = nameOf(scope, ref);
    offers.delete(name);
    offers.set(name, { tool, key });
    if (offers.size > limits.kept) offers.delete(offers.keys().next().value as string);
    return `call ${runAgainName} with ref "${ref}", then make the same call again.`;
  }

  return {
    offer,
    ask(scope, held) {
      const { tool, record, error } = held;
      const text = questionOf(held, offer(scope, tool, record));
      const { content, structuredContent } = fieldsOf(record.value);
      return {
        content: [{ type: 'text', text }, ...(Array.isArray(content) ? content : [])],
        ...(structuredContent === undefined ? {} : { structuredContent }),
        isError: true,
        resultType: 'complete',
        _meta: {
          [metaNames.question]: { ref: record.ref, at: endOf(record).toISOString() },
          ...(error === undefined ? {} : { [metaNames.error]: error }),
        },
      };
    },
    async allow(scope, args) {
      const { ref } = fieldsOf(args);
      if (typeof ref !== 'string') return undefined;
      const name = nameOf(scope, ref);
      const offered = offers.get(name);
      if (offered === undefined) return undefined;
      const { tool, key } = offered;
      const allowed = result(`${tool} may run once more. Make the same call again now.`);
      const record = await semel.records.get(key);
      if (record === undefined || record.expired) return allowed;
      if (record.ref !== ref || !(await release(semel, record)))
        return {
          ...result(`${tool} has run since, or runs now. Make the same call again to see.`),
          isError: true,
        };
      offers.delete(name);
      return allowed;
    },
  };
}

/** Under the fence that was seen: what happened to the record since was not asked about. */
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

/** What stands for a ref that nobody was asked about here. */
export function unknownRef(): ToolResult {
  const text =
    'No call was held back under this ref. Make the call itself: if it is held back, you get a ref.';
  return { ...result(text), isError: true };
}

/** The last page of a list of tools, with ours at its end; the same reply where nothing is to be added. */
export function withRunAgain(
  request: unknown,
  reply: Reply,
  mayBeHeld: (tool: ListedTool) => boolean,
): Reply {
  const { tools, nextCursor } = fieldsOf(fieldsOf(reply).result);
  if (!Array.isArray(tools) || (nextCursor ?? undefined) !== undefined) return reply;
  if (tools.some((tool) => fieldsOf(tool).name === runAgainName)) return reply;
  // What stood on the pages before is not known here.
  const isWhole = fieldsOf(fieldsOf(request).params).cursor === undefined;
  if (isWhole && !tools.some((tool) => typeof fieldsOf(tool).name === 'string' && mayBeHeld(tool)))
    return reply;
  const list = { ...(reply as { result: object }).result, tools: [...tools, runAgainTool] };
  return writable({ ...reply, result: list }) as Reply;
}

function questionOf({ record, drift }: Held, how: string): string {
  const { value, error, status } = record;
  const at = endOf(record).toISOString();
  const when = `${at.slice(0, 10)} at ${at.slice(11, 19)} UTC`;
  if (status === 'unknown') {
    const said = shortened((error?.message ?? '').slice(endedWords.length));
    return (
      `Not run again. The same call failed on ${when}: ${said}\nIt may have had an effect before it failed: check that first. ` +
      `If nothing was done, or you have corrected the cause, ${how}`
    );
  }
  const differing = drift.length === 0 ? '' : ` (yours differs in ${drift.join(', ')})`;
  return (
    `Not run again. The same call succeeded on ${when}${differing}; ${resultIn(value)}. ` +
    `If this is a retry, it is done: do nothing more. If you mean it as a new action, ${how}`
  );
}

function resultIn(value: unknown): string {
  if (value === undefined) return 'its result was not kept';
  const { task } = fieldsOf(value);
  return isTask(value as ToolResult) ? `it began the task ${fieldsOf(task).taskId}` : 'its result follows';
}

function endOf({ settledAt, updatedAt }: RecordInfo): Date {
  return settledAt ?? updatedAt;
}

function result(text: string): ToolResult {
  return { content: [{ type: 'text', text }], resultType: 'complete' };
}

function shortened(text: string): string {
  return text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text;
}
