// Waits until LangGraph has saved the step that makes a call. By default it saves while the next step already runs: if the
// process dies in between, the same words come back as another message, with another random id.

import { SemelError } from '../../core/errors.ts';

interface Checkpointer {
  getTuple(config: object): Promise<unknown>;
}

const longestMs = 30_000;
const firstPauseMs = 10;
const longestPauseMs = 500;

/** Undefined if there is nothing to wait for: LangGraph waits itself, or does not say which checkpoint it is. */
export function waitUntilSaved(
  configurable: Readonly<Record<string, unknown>>,
  durability: unknown,
  signal: AbortSignal | undefined,
): Promise<void> | undefined {
  const { thread_id, checkpoint_map: ids, __pregel_checkpointer: checkpointer } = configurable;
  const checkpoint_id = (ids as Readonly<Record<string, unknown>> | undefined)?.[''];
  if (durability === 'sync' || typeof checkpoint_id !== 'string' || !isReadable(checkpointer))
    return undefined;
  return poll(checkpointer, { configurable: { thread_id, checkpoint_ns: '', checkpoint_id } }, signal);
}

async function poll(
  checkpointer: Checkpointer,
  config: object,
  signal: AbortSignal | undefined,
): Promise<void> {
  const startedAt = performance.now();
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    // A store that cannot be read may not have been written either.
    const saved = await checkpointer.getTuple(config).catch(() => undefined);
    // An aborted call starts nothing, so it needs no turn that lasts.
    if ((saved !== undefined && saved !== null) || signal?.aborted === true) return;
    if (performance.now() - startedAt > longestMs) throw notSaved();
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

function isReadable(checkpointer: unknown): checkpointer is Checkpointer {
  return typeof (checkpointer as Partial<Checkpointer> | undefined)?.getTuple === 'function';
}

function notSaved(): SemelError {
  return new SemelError(
    'NO_IDENTITY',
    'The checkpointer has not saved the step that makes this call, so a later run could not recognise it. Nothing was run.',
    {
      path: 'turn',
      next: 'Check the checkpointer, or name the turn: semel.within({ conversation, turn }, () => agent.invoke(…)).',
    },
  );
}
