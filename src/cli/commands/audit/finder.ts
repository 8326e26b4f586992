// Finds what looks like repeats in a stream of calls: the same call again within a time, the same call under another
// key, one key for two calls, repeats right after a restart. Pure; remembers what is recent, not the log.

import { createRecent } from './recent.ts';

export interface Seen {
  readonly line: number;
  readonly at: number;
  /** Stands for what must be the same: a digest. */
  readonly same: string;
  /** Digest of what may be worded differently in the same call. */
  readonly wording: string | undefined;
  /** What is the same, for people. */
  readonly shown: string;
  readonly name: string;
  readonly key: string | undefined;
  /** The log says that this one failed. */
  readonly failed: boolean;
}

interface Occurrence {
  readonly line: number;
  readonly at: number;
  readonly key: string | undefined;
}

export interface Group {
  readonly name: string;
  readonly shown: string;
  /** Number of calls, including the first one. */
  count: number;
  /** The first ones. */
  readonly calls: Occurrence[];
  readonly keys: Set<string>;
  /** Digests, one per wording. */
  readonly wordings: Set<string>;
  shortestGapMs: number;
  /** Repeats right after a restart. */
  nearRestart: number;
  /** Repeats of a call that had failed. */
  afterFailure: number;
  restart: Restart | undefined;
}

interface Restart {
  readonly line: number;
  readonly at: number;
  /** A line says so, or nothing was logged for a while. */
  readonly by: 'line' | 'gap';
}

/** One key for two calls: the second was perhaps eaten. */
export interface Reuse {
  readonly key: string;
  count: number;
  readonly calls: { readonly line: number; readonly at: number; readonly shown: string }[];
}

export interface Found {
  readonly calls: number;
  /** How many of these have a key. */
  readonly keyed: number;
  readonly repeats: number;
  readonly nearRestart: number;
  readonly groups: readonly Group[];
  /** Groups that are counted, and not kept. */
  readonly moreGroups: number;
  readonly reuses: readonly Reuse[];
  readonly moreReuses: number;
  readonly restarts: number;
  /** Calls that had to be forgotten before their time: the log has too many different ones. */
  readonly forgotten: number;
}

interface FinderOptions {
  readonly withinMs: number;
  readonly nearMs: number;
  /** Different calls to remember. */
  readonly most?: number;
}

export interface Finder {
  call(seen: Seen): void;
  /** A line that looks like a start. */
  restart(line: number, at: number | undefined): void;
  result(): Found;
}

interface Before extends Occurrence {
  readonly wording: string | undefined;
  readonly failed: boolean;
  readonly group: Group | undefined;
}

interface KeyUse {
  readonly same: string;
  readonly line: number;
  readonly at: number;
  readonly shown: string;
}

const keptCalls = 20;
const keptKeys = 10;
const keptGroups = 10_000;
const keptReuses = 1_000;
/** A pause this many times longer than usual counts as a restart. */
const unusual = 20;
const leastGapMs = 10_000;

export function createFinder({ withinMs, nearMs, most = 500_000 }: FinderOptions): Finder {
  const recent = createRecent<Before>(withinMs, most);
  const uses = createRecent<KeyUse>(withinMs, most);
  const groups: Group[] = [];
  const reuses = new Map<string, Reuse>();
  let [calls, keyed, repeats, nearRestart, moreGroups, moreReuses, restarts] = [0, 0, 0, 0, 0, 0, 0];
  let lastAt: number | undefined;
  let usualGapMs: number | undefined;
  let last: Restart | undefined;

  function noteGap({ line, at }: Seen): void {
    if (lastAt !== undefined) {
      const gap = at - lastAt;
      if (usualGapMs !== undefined && calls > 10 && gap >= Math.max(leastGapMs, unusual * usualGapMs))
        last = { line, at, by: 'gap' };
      else if (gap >= 0) usualGapMs = usualGapMs === undefined ? gap : usualGapMs * 0.95 + gap * 0.05;
    }
    lastAt = at;
  }

  function repeated(seen: Seen, before: Before): Group {
    const { line, at, key } = seen;
    const group = before.group ?? begin(seen, before);
    group.count += 1;
    if (group.calls.length < keptCalls) group.calls.push({ line, at, key });
    if (key !== undefined && group.keys.size < keptKeys) group.keys.add(key);
    if (seen.wording !== undefined && group.wordings.size < keptKeys) group.wordings.add(seen.wording);
    group.shortestGapMs = Math.min(group.shortestGapMs, Math.abs(at - before.at));
    if (before.failed) group.afterFailure += 1;
    // Only what was called before the restart is repeated because of it.
    if (last !== undefined && at >= last.at && at - last.at <= nearMs && before.line < last.line) {
      group.nearRestart += 1;
      group.restart ??= last;
      nearRestart += 1;
    }
    repeats += 1;
    return group;
  }

  function begin({ name, shown }: Seen, { line, at, key, wording }: Before): Group {
    const group: Group = {
      name,
      shown,
      count: 1,
      calls: [{ line, at, key }],
      keys: new Set(key === undefined ? [] : [key]),
      wordings: new Set(wording === undefined ? [] : [wording]),
      shortestGapMs: Number.POSITIVE_INFINITY,
      nearRestart: 0,
      afterFailure: 0,
      restart: undefined,
    };
    if (groups.length < keptGroups) groups.push(group);
    else moreGroups += 1;
    return group;
  }

  function noteKey({ key, same, line, at, shown }: Seen): void {
    if (key === undefined) return;
    keyed += 1;
    const use = uses.get(key);
    if (use !== undefined && use.same !== same && Math.abs(at - use.at) <= withinMs) {
      const known = reuses.get(key);
      const reuse = known ?? { key, count: 1, calls: [{ line: use.line, at: use.at, shown: use.shown }] };
      if (known === undefined && reuses.size < keptReuses) reuses.set(key, reuse);
      else if (known === undefined) moreReuses += 1;
      reuse.count += 1;
      if (reuse.calls.length < keptCalls) reuse.calls.push({ line, at, shown });
    }
    uses.set(key, { same: use?.same ?? same, line: use?.line ?? line, at, shown: use?.shown ?? shown });
  }

  return {
    call(seen) {
      calls += 1;
      noteGap(seen);
      const { same, line, at, key, failed, wording } = seen;
      const before = recent.get(same);
      const isRepeat = before !== undefined && Math.abs(at - before.at) <= withinMs;
      const group = isRepeat ? repeated(seen, before) : undefined;
      recent.set(same, { line, at, key, failed, wording, group });
      noteKey(seen);
    },
    restart(line, at) {
      restarts += 1;
      last = { line, at: at ?? lastAt ?? Number.NEGATIVE_INFINITY, by: 'line' };
    },
    result: () => ({
      calls,
      keyed,
      repeats,
      nearRestart,
      groups: groups.toSorted(
        (a, b) => suspicion(b) - suspicion(a) || (a.calls[0]?.line ?? 0) - (b.calls[0]?.line ?? 0),
      ),
      moreGroups,
      reuses: [...reuses.values()].sort((a, b) => b.count - a.count),
      moreReuses,
      restarts,
      forgotten: recent.forgotten,
    }),
  };
}

const reads = /(^|[._-])(search|get|list|read|fetch|find|query|lookup|check|status|describe|ping|health)/i;

/** A read may be repeated, and so may what failed; what differs in its key, or follows a restart, should not be. */
export function suspicion({ name, keys, nearRestart, afterFailure, shortestGapMs, count }: Group): number {
  const every = afterFailure >= count - 1;
  return (
    (reads.test(name) ? -20 : 0) +
    (nearRestart > 0 ? 8 : 0) +
    (keys.size > 1 ? 6 : 0) +
    (every ? -4 : 0) +
    (shortestGapMs <= 30_000 ? 2 : 0) +
    Math.min(3, Math.log2(count))
  );
}
