// Which call of a caller was the last that may have changed something at a server. A guessed match answers for a repeat
// only while nothing else has changed since. Kept in the ledger, so that every proxy knows it, and a crash forgets nothing:
// where it cannot be read, the answer is "something may have changed".

import { limits } from '../../core/limits.ts';
import { NotLanded } from '../../core/signals.ts';
import type { RecordInfo, Semel, ToolFunction } from '../../semel/index.ts';
import { fieldsOf } from '../protocol/messages.ts';

/** One call that may change something: its record's key, or a name of its own where it has no record. */
export interface Change {
  readonly call: string;
  readonly tool: string;
}

export interface Changes {
  /**
   * Durable when it resolves: before the call is sent. `end` says what became of it. Throws where the ledger cannot be
   * written.
   */
  begin(scope: string, change: Change): Promise<EndOfChange>;
  /** The same for a call that runs in any case: where the ledger is away, this process remembers that it knows nothing. */
  pass(scope: string, tool: string): Promise<EndOfChange>;
  /** What may have changed something since this call ended; undefined: nothing has. */
  since(scope: string, call: string, endedAt: Date | undefined): Promise<Since | undefined>;
}

export interface Since {
  readonly tool: string;
  /** It is known to have been done. */
  readonly isDone: boolean;
}

export type EndOfChange = (mayHaveChanged: boolean) => Promise<void>;

/** What is kept for one caller. `beside`: calls that were still open then, so that they may have changed something later. */
interface Kept extends Change {
  readonly beside: readonly Change[];
}

/** What was read, and how often the record had been written by then. */
interface Found {
  readonly kept: Kept | undefined;
  readonly writes: number;
}

/** Of what is kept, the calls that are open, besides one. */
type OpenIn = (kept: Kept | undefined, besides: string) => Promise<readonly Change[]>;

interface Noted<T> {
  readonly becomes: Kept | undefined;
  readonly answer: T;
}

interface Note {
  apply(
    kept: Kept | undefined,
    openIn: OpenIn,
  ): Promise<{ readonly becomes: Kept | undefined; readonly tell: () => void }>;
  fail(error: unknown): void;
}

/** One contract for all servers, under a name that `contractName` never gives. */
const markName = 'mcp-last-change';
/** Longer than any guess answers. */
const keptFor = '7d';
const mostBeside = 20;
/** A note is not guessed, whatever the call is that it is about. */
const ownTurn = { conversation: 'notes', turn: 'notes', weak: false };
/** A call whose note was lost. It has no record, so nobody can tell when it ended. */
const overwritten: Change = { call: 'overwritten', tool: 'another tool' };
const unknown: Since = { tool: 'another tool', isDone: false };

export function createChanges(semel: Semel, server: string): Changes {
  /** Notes that this process has written itself, by their number. */
  const written = new Set<unknown>();
  let tried = 0;
  const mark = markIn(semel, (nth) => written.add(nth));
  /** Notes of one caller that wait while others are written: what is read and then written must not cross. */
  const waiting = new Map<string, Note[]>();
  /** Calls without a record that this process has passed on and that have not ended. */
  const passing = new Set<string>();
  /** Callers of whom something could not be written down. */
  const unsure = new Set<string>();
  let isUnsureOfAll = false;
  let passed = 0;

  async function read(scope: string): Promise<Found> {
    const { key } = await semel.keyOf(mark, { server, scope });
    const record = await semel.records.get(key);
    return { kept: keptIn(record?.args), writes: record?.attempts ?? 0 };
  }

  /**
   * Another proxy of the same caller may have written since it was read: then its note is gone, and with it the call that it
   * was about. What is written instead says that something unknown may have changed.
   */
  async function write(scope: string, kept: Kept, found: Found): Promise<void> {
    let last = found.writes;
    for (let { beside } = kept; ; beside = [overwritten, ...beside]) {
      const writes = await writeOnce(scope, { ...kept, beside });
      if (writes === last + 1) break;
      last = writes;
    }
    unsure.delete(scope);
  }

  /**
   * The record is released at once, so that the next call takes it over with its own words. Who waits for another proxy's note
   * is told how that one ended, and has written nothing yet. Returns how often the record was written.
   */
  async function writeOnce(scope: string, { call, tool, beside }: Kept): Promise<number> {
    for (;;) {
      tried += 1;
      const nth = tried;
      const note = { server, scope, call, tool, beside: beside.slice(0, mostBeside), nth };
      const result = await semel.within(ownTurn, () => mark.try(note));
      if (!result.ok && result.error.code !== 'NOT_LANDED') throw result.error;
      if (written.delete(nth)) return result.receipt.attempt;
    }
  }

  async function isOpen(change: Change): Promise<boolean> {
    const record = await recordOf(change);
    return record === undefined ? passing.has(change.call) : record.status === 'running' || record.inDoubt;
  }

  /** A call that was passed on has no record; its server says of it that a repeat is harmless. */
  async function isDone(change: Change): Promise<boolean> {
    if (!change.call.includes('/')) return !passing.has(change.call);
    return (await recordOf(change))?.status === 'succeeded';
  }

  async function recordOf({ call }: Change): Promise<RecordInfo | undefined> {
    return call.includes('/') ? semel.records.get(call) : undefined;
  }

  /** All notes that have come meanwhile are one write. */
  function note<T>(scope: string, apply: (kept: Kept | undefined, openIn: OpenIn) => Promise<Noted<T>>) {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const one: Note = {
      async apply(kept, openIn) {
        const { becomes, answer } = await apply(kept, openIn);
        return { becomes, tell: () => resolve(answer) };
      },
      fail: reject,
    };
    const before = waiting.get(scope);
    if (before === undefined) void writeNotes(scope, [one]);
    else before.push(one);
    return promise;
  }

  async function writeNotes(scope: string, first: Note[]): Promise<void> {
    for (let notes = first; notes.length > 0; notes = waiting.get(scope) ?? []) {
      waiting.set(scope, []);
      try {
        const openIn = openCalls();
        const found = await read(scope);
        let { kept } = found;
        const told: (() => void)[] = [];
        for (const { apply } of notes) {
          const { becomes, tell } = await apply(kept, openIn);
          kept = becomes;
          told.push(tell);
        }
        if (kept !== undefined && kept !== found.kept) await write(scope, kept, found);
        for (const tell of told) tell();
      } catch (error) {
        for (const { fail } of notes) fail(error);
      }
    }
    waiting.delete(scope);
  }

  /** Of what was kept, the calls that have not ended: they may still change something. Each is looked up once. */
  function openCalls(): OpenIn {
    const known = new Map<string, Promise<boolean>>();
    const isStillOpen = (change: Change) => {
      const answer = known.get(change.call) ?? isOpen(change);
      known.set(change.call, answer);
      return answer;
    };
    return async (kept, besides) => {
      const open: Change[] = [];
      for (const { call, tool } of kept === undefined ? [] : [kept, ...kept.beside])
        if (call !== besides && open.length < mostBeside && (await isStillOpen({ call, tool })))
          open.push({ call, tool });
      return open;
    };
  }

  async function begin(scope: string, change: Change): Promise<EndOfChange> {
    const before = await note(scope, async (kept, openIn) => ({
      becomes: { ...change, beside: await openIn(kept, change.call) },
      answer: kept,
    }));
    return (mayHaveChanged) =>
      note(scope, async (kept, openIn) => {
        const isOwn = kept?.call === change.call;
        if (mayHaveChanged && !isOwn)
          return { becomes: { ...change, beside: await openIn(kept, change.call) }, answer: undefined };
        const isUndone = !mayHaveChanged && isOwn && before !== undefined && before.call !== change.call;
        return { becomes: isUndone ? before : kept, answer: undefined };
      }).catch(() => doubt(scope));
  }

  function doubt(scope: string): void {
    unsure.add(scope);
    if (unsure.size <= limits.kept) return;
    isUnsureOfAll = true;
    unsure.clear();
  }

  return {
    begin,
    async pass(scope, tool) {
      passed += 1;
      const call = `pass ${process.pid} ${passed}`;
      passing.add(call);
      const unnoted = () => {
        doubt(scope);
        return async () => undefined;
      };
      // The call would run without a ledger, so it does not wait long for one.
      const { promise: late, resolve } = Promise.withResolvers<EndOfChange>();
      const timer = setTimeout(() => resolve(unnoted()), limits.noteMs);
      const begun = begin(scope, { call, tool }).catch(unnoted);
      const end = await Promise.race([begun, late]).finally(() => clearTimeout(timer));
      return async () => {
        passing.delete(call);
        await end(true);
      };
    },
    async since(scope, call, endedAt) {
      if (isUnsureOfAll || unsure.has(scope)) return unknown;
      const { kept } = await read(scope);
      if (kept === undefined) return unknown;
      if (kept.call !== call) return { tool: kept.tool, isDone: await isDone(kept) };
      for (const change of kept.beside) {
        const record = await recordOf(change);
        if (record?.status === 'released' || record?.status === 'failed') continue;
        const { settledAt } = record ?? {};
        // Without a record nobody can tell when it ended.
        if (settledAt === undefined || endedAt === undefined || settledAt >= endedAt)
          return { tool: change.tool, isDone: record?.status === 'succeeded' };
      }
      return kept.beside.length < mostBeside ? undefined : unknown;
    },
  };
}

type Mark = ToolFunction<Readonly<Record<string, unknown>>, never>;

function markIn(semel: Semel, onWritten: (nth: unknown) => void): Mark {
  return semel.tool({
    name: markName,
    effect: 'write-non-idempotent',
    per: 'ever',
    // The caller is in its identity; a call that is passed on is noted without one.
    share: true,
    identity: ['server', 'scope'],
    dispatch: 'explicit',
    // A proxy that is killed while it writes keeps no call of the others for long, however often that happens.
    lease: '5s',
    maxAttempts: Number.MAX_SAFE_INTEGER,
    failureWindow: keptFor,
    run: ({ nth }: { readonly nth: unknown }) => {
      onWritten(nth);
      throw new NotLanded('It only notes which change came last.');
    },
  } as never) as Mark;
}

function keptIn(args: unknown): Kept | undefined {
  const { call, tool, beside } = fieldsOf(args);
  if (typeof call !== 'string' || typeof tool !== 'string' || !Array.isArray(beside)) return undefined;
  return { call, tool, beside: beside as readonly Change[] };
}
