// Watches a tool while a row is played: what each of its functions did to the world, and whether
// `run` took the key that it was given. Changes nothing, except for the fault that a row asks for.

import type { AttemptContext } from '../../call/index.ts';
import { unsure, type Verification } from '../../core/verification.ts';
import type { CloneChanges } from '../../semel/index.ts';
import type { SeenRequest } from './replies.ts';

export type Definition = Parameters<NonNullable<CloneChanges['definition']>>[0];

interface SeenRun {
  /** How many effects this one run made; undefined where others ran at the same time. */
  effects?: number;
  /** Which members of the context it read. */
  readonly read: Set<PropertyKey>;
}

export interface Watch {
  readonly runs: SeenRun[];
  readonly verdicts: Verification[];
  /** Functions other than `run` during which the world changed. */
  readonly meddlers: Set<string>;
  readonly requests: SeenRequest[];
}

export function newWatch(): Watch {
  return { runs: [], verdicts: [], meddlers: new Set(), requests: [] };
}

/** What the connection says when the reply is lost on its way back. */
export function lostReply(): Error {
  return Object.assign(new Error('socket hang up (landsOnce lost the reply)'), { code: 'ECONNRESET' });
}

export interface Faults {
  /** The first run is made to throw after it is done. */
  throwAfterRun?: boolean;
}

export function watched(
  definition: Definition,
  watch: Watch,
  effects: () => number | Promise<number>,
  faults: Faults,
): Definition {
  let running = 0;
  const { run, prepare, verify, onReplay } = definition;

  async function measured<T>(work: () => T | Promise<T>, tell: (grown: number) => void): Promise<T> {
    const before = await counted(effects);
    try {
      return await work();
    } finally {
      const after = await counted(effects);
      if (before !== undefined && after !== undefined) tell(after - before);
    }
  }

  async function watchedRun(args: unknown, ctx: AttemptContext): Promise<unknown> {
    const seen: SeenRun = { read: new Set() };
    watch.runs.push(seen);
    const startedAmong = running;
    running += 1;
    const runsBefore = watch.runs.length;
    try {
      return await measured(
        async () => {
          const value = await run(args as never, noting(ctx, seen.read) as never);
          if (!faults.throwAfterRun) return value;
          faults.throwAfterRun = false;
          throw lostReply();
        },
        (grown) => {
          const wasAlone = startedAmong === 0 && watch.runs.length === runsBefore;
          if (wasAlone) seen.effects = grown;
        },
      );
    } finally {
      running -= 1;
    }
  }

  /** A change can be attributed to one of these only while no `run` is active. */
  function watchedPart<Part extends (...args: never[]) => unknown>(name: string, part: Part): Part {
    return ((...args: never[]) =>
      measured(
        () => part(...args),
        (grown) => {
          if (grown > 0 && running === 0) watch.meddlers.add(name);
        },
      )) as Part;
  }

  return {
    ...definition,
    run: watchedRun as Definition['run'],
    ...(prepare === undefined ? {} : { prepare: watchedPart('prepare', prepare) }),
    ...(onReplay === undefined ? {} : { onReplay: watchedPart('onReplay', onReplay) }),
    ...(verify === undefined
      ? {}
      : {
          verify: watchedPart('verify', async (args, ctx) => {
            try {
              const verdict = await verify(args as never, ctx);
              watch.verdicts.push(verdict);
              return verdict;
            } catch (error) {
              watch.verdicts.push(
                unsure(`it threw: ${error instanceof Error ? error.message : String(error)}`),
              );
              throw error;
            }
          }) as NonNullable<Definition['verify']>,
        }),
  } as Definition;
}

/** Inside an attempt, a broken counter must not look like a failure of the tool; outside, it is reported. */
async function counted(effects: () => number | Promise<number>): Promise<number | undefined> {
  try {
    return await effects();
  } catch {
    return undefined;
  }
}

function noting(ctx: AttemptContext, read: Set<PropertyKey>): AttemptContext {
  return new Proxy(ctx, {
    get(target, name) {
      read.add(name);
      return Reflect.get(target, name);
    },
  });
}
