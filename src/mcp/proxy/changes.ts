// Which call of a caller was the last that may have changed something at a server. A guessed match answers for a repeat
// only while nothing else has changed since. Kept in the ledger, so that every proxy knows it, and a crash forgets nothing:
// where it cannot be read, the answer is "something may have changed".

import { randomUUID } from 'node:crypto';
import { limits } from '../../core/limits.ts';
import { NotLanded } from '../../core/signals.ts';
import type { RecordInfo, Semel, ToolFunction } from '../../semel/index.ts';
import { fieldsOf } from '../protocol/messages.ts';

/** One call that may change something: its record's key, or a name of its own where it has no record. */
export interface Change {
  readonly call: string;
  readonly tool: string;
  /** Of a call without a record that is not known to have ended; past that instant it is taken to have. */
  readonly openUntil?: number;
  /** Of a call without a record that ended, but not with success. */
  readonly hasFailed?: true;
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

/** `hasSucceeded` matters where the call has no record that would say it. */
export type EndOfChange = (mayHaveChanged: boolean, hasSucceeded?: boolean) => Promise<void>;

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
/** A proxy that dies never says that what it passed on has ended; no call takes longer than this, as a rule. */
const passMs = 60 * 60_000;
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
  /** Processes of two machines may have one number. */
  const ownId = randomUUID();

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
  async function writeOnce(scope: string, { beside, ...last }: Kept): Promise<number> {
    for (;;) {
      tried += 1;
      const nth = tried;
      const note = { server, scope, ...last, beside: beside.slice(0, mostBeside), nth };
      const result = await semel.within(ownTurn, () => mark.try(note));
      if (!result.ok && result.error.code !== 'NOT_LANDED') throw result.error;
      if (written.delete(nth)) return result.receipt.attempt;
    }
  }

  async function isOpen(change: Change): Promise<boolean> {
    const record = await recordOf(change);
    if (record !== undefined) return record.status === 'running' || record.inDoubt;
    // What another proxy has passed on, only its note tells.
    return passing.has(change.call) || (change.openUntil ?? 0) > Date.now();
  }

  /** A call that was passed on has no record; its server says of it that a repeat is harmless. */
  async function isDone(change: Change): Promise<boolean> {
    if (!change.call.includes('/')) return change.openUntil === undefined && change.hasFailed !== true;
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
      for (const { beside: _, ...change } of kept === undefined ? [] : ([kept, ...kept.beside] as Kept[]))
        if (change.call !== besides && open.length < mostBeside && (await isStillOpen(change)))
          open.push(change);
      return open;
    };
  }

  async function begin(scope: string, change: Change): Promise<EndOfChange> {
    const before = await note(scope, async (kept, openIn) => ({
      becomes: { ...change, beside: await openIn(kept, change.call) },
      answer: kept,
    }));
    return (mayHaveChanged, hasSucceeded = true) =>
      note(scope, async (kept, openIn) => {
        const isOwn = kept?.call === change.call;
        const { openUntil, ...rest } = change;
        // Only the note of a call without a record tells that it has ended.
        const isToldHere = isOwn && openUntil !== undefined;
        const over = openUntil === undefined || hasSucceeded ? rest : { ...rest, hasFailed: true as const };
        if (mayHaveChanged && isToldHere)
          return { becomes: { ...over, beside: kept.beside }, answer: undefined };
        if (mayHaveChanged && !isOwn)
          return { becomes: { ...over, beside: await openIn(kept, change.call) }, answer: undefined };
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
      const call = `pass ${ownId} ${passed}`;
      passing.add(call);
      const unnoted = () => {
        doubt(scope);
        return async () => undefined;
      };
      const begun = begin(scope, { call, tool, openUntil: Date.now() + passMs }).catch(unnoted);
      // The call would run without a ledger, so it does not wait long for one.
      const { promise: late, resolve } = Promise.withResolvers<void>();
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        doubt(scope);
        resolve();
      }, limits.noteMs);
      await Promise.race([begun, late]).finally(() => clearTimeout(timer));
      return async (_mayHaveChanged, hasSucceeded) => {
        passing.delete(call);
        // A note that comes late is told all the same that it is over.
        const told = begun.then((end) => end(true, hasSucceeded));
        if (!isLate) await told;
      };
    },
    async since(scope, call, endedAt) {
      if (isUnsureOfAll || unsure.has(scope)) return unknown;
      // What this process is about to write comes first.
      const kept = waiting.has(scope)
        ? await note(scope, async (found) => ({ becomes: found, answer: found }))
        : (await read(scope)).kept;
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
  const { call, tool, beside, openUntil, hasFailed } = fieldsOf(args);
  if (typeof call !== 'string' || typeof tool !== 'string' || !Array.isArray(beside)) return undefined;
  return {
    call,
    tool,
    ...(typeof openUntil === 'number' ? { openUntil } : {}),
    ...(hasFailed === true ? { hasFailed } : {}),
    beside: beside as readonly Change[],
  };
}
