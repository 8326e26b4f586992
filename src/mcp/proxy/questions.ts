// A repeat that may be a retry or a new wish is held back with a question to the model. The same call, made again after
// its maker was given the question, is the answer: run it. Nothing of this outlives the process: then it is asked again.

import { limits } from '../../core/limits.ts';
import type { RecordInfo, Semel } from '../../semel/index.ts';
import type { Id, Reply, ToolResult } from '../protocol/messages.ts';
import { metaNames } from './asked.ts';
import { endedWords, textOf } from './outcome.ts';

/** A record that answers for a repeat, and why that may not be what is meant. */
export interface Held {
  readonly record: RecordInfo;
  /** It ended with an error; else it succeeded. */
  readonly hasFailed: boolean;
  /** The tool that has changed something since. */
  readonly changedBy: string;
}

export interface Questions {
  /** A moment in the order of arrivals and questions. */
  now(): number;
  /** The question as the reply to this call. It counts as put when `delivered` is told of this very object. */
  ask(id: Id, hearer: string, held: Held): Reply;
  delivered(reply: Reply): void;
  /** This process ran the call with this key to its end. */
  noteEnd(key: string): void;
  /** Then whoever had asked before shares that run. */
  hasEndedSince(key: string, moment: number): boolean;
  /** Whether the call that arrived then was made with knowledge of the question; says so once. */
  takeAnswer(hearer: string, held: Held, arrivedAt: number): boolean;
}

/** A model that comes back later than this has other things in mind. */
const answerWithinMs = 10 * 60_000;

/**
 * @param thinkMs No model answers sooner. Over HTTP the proxy may read a parallel duplicate only after the question to its
 * twin was delivered: the client sent it without knowing of the question, so it is asked again instead of being run.
 */
export function createQuestions(thinkMs = 0): Questions {
  /** By who was asked and by the state of the record: another client has not heard it, another state is another question. */
  const put = new Map<string, { readonly at: number; readonly since: number }>();
  const pending = new WeakMap<Reply, string>();
  const ended = new Map<string, number>();
  let moments = 0;
  const nameOf = (hearer: string, { record }: Held) => JSON.stringify([hearer, record.ref]);

  const now = () => {
    moments += 1;
    return moments;
  };

  return {
    now,
    noteEnd(key) {
      ended.delete(key);
      ended.set(key, now());
      if (ended.size > limits.kept) ended.delete(ended.keys().next().value as string);
    },
    hasEndedSince: (key, moment) => (ended.get(key) ?? 0) > moment,
    ask(id, hearer, held) {
      const reply: Reply = { jsonrpc: '2.0', id, result: questionOf(held) };
      pending.set(reply, nameOf(hearer, held));
      return reply;
    },
    delivered(reply) {
      const name = pending.get(reply);
      if (name === undefined) return;
      put.delete(name);
      put.set(name, { at: now(), since: performance.now() });
      if (put.size > limits.kept) put.delete(put.keys().next().value as string);
    },
    takeAnswer(hearer, held, arrivedAt) {
      const name = nameOf(hearer, held);
      const question = put.get(name);
      if (question === undefined || question.at > arrivedAt) return false;
      const waitedMs = performance.now() - question.since;
      if (waitedMs < thinkMs) return false;
      put.delete(name);
      return waitedMs < answerWithinMs;
    },
  };
}

/** Under the fence that was seen: of several who may repeat it, one does, and the others share that run. */
export async function releaseFor(semel: Semel, { record, hasFailed, changedBy }: Held): Promise<void> {
  const act = { by: 'the model, through semel mcp', note: `again, on purpose, after ${changedBy}` };
  try {
    if (hasFailed) await semel.doubts.resolve(record.ref, 'runAgain', act);
    else await semel.records.forget(record.ref, act);
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'RESOLVE_STALE') throw error;
  }
}

function questionOf({
  record,
  hasFailed,
  changedBy,
}: Held): Extract<Reply, { readonly result: unknown }>['result'] {
  const { settledAt, updatedAt, ref, value, error } = record;
  const at = settledAt ?? updatedAt;
  const when = `${at.toISOString().slice(0, 10)} at ${at.toISOString().slice(11, 19)} UTC`;
  const text = hasFailed
    ? `Not run again. This exact call ended with an error on ${when}: ${shortened((error?.message ?? '').slice(endedWords.length))}\n` +
      `It may have had an effect before it failed: check that if you can. Since then ${changedBy} has run. ` +
      'If the cause is corrected and you mean to run it now, make the same call once more.'
    : `Not run again. This exact call succeeded on ${when}, with: ${shortened(value === undefined ? 'a result that was not kept' : textOf(value as ToolResult))}\n` +
      `Since then ${changedBy} has run, and may have changed what this call did. ` +
      'If this was a retry, nothing is left to do. If you mean it as a new action, make the same call once more.';
  return {
    content: [{ type: 'text', text }],
    isError: true,
    resultType: 'complete',
    _meta: { [metaNames.question]: { ref, at: at.toISOString() } },
  };
}

function shortened(text: string): string {
  return text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text;
}
