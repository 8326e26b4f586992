// The history of a record, as one lane per attempt. Pure. Every fence of a generation belongs to an attempt, or to a decision of a
// person or a rule; the history names the decisions, so all other fences are attempts, also those that left no event.

import type { HistoryEvent, RecordInfo } from './answers.ts';

export interface Moment {
  /** Undefined: it was not recorded; its place in the list is its order. */
  readonly at: number | undefined;
  readonly what: string;
  /** Undefined: a person, or somebody who asked again. */
  readonly lane: number | undefined;
  readonly isAlarm?: boolean;
}

export interface Lane {
  /** From 1: which attempt of this record. */
  readonly attempt: number;
  readonly fence: number;
  readonly owner: string | undefined;
  /** The first and the last of its moments. */
  readonly first: number;
  readonly last: number;
}

interface Raw {
  readonly at: number | undefined;
  /** Where it stands among the others: its time, or the earliest that it can have. */
  readonly order: number;
  readonly what: string;
  readonly fence: number | undefined;
  readonly isAlarm?: boolean;
}

/** More lanes than this are not readable: of the earlier attempts, only the moments are shown. */
const maxLanes = 12;
/** The lock of a job can be claimed for years. The first attempt is shown, and the latest. */
const maxAttempts = 50;

const acts: Readonly<Record<string, string>> = {
  landed: 'landed',
  notLanded: 'not landed',
  runAgain: 'run again',
  abandon: 'give it up',
  died: 'its process died',
  forget: 'forget it',
  reopen: 'retry it',
};

const endings: Readonly<Record<RecordInfo['status'], string | undefined>> = {
  running: undefined,
  succeeded: 'succeeded: it landed',
  failed: 'failed: it was refused',
  released: 'released: it did not land, or may run again',
  unknown: 'ended, and nobody knows whether it landed',
};

interface Attempt {
  readonly fence: number;
  readonly n: number;
  readonly takeover: HistoryEvent | undefined;
  readonly startedAt: number | undefined;
  /** It cannot have started before. */
  readonly notBefore: number;
}

export function lanesOf(
  record: RecordInfo,
  history: readonly HistoryEvent[],
): { readonly lanes: readonly Lane[]; readonly moments: readonly Moment[] } {
  const own = history.filter(({ generation }) => generation === record.generation);
  const decisions = own.filter(({ type }) => type === 'resolved' || type === 'poisoned');
  const attempts = attemptsOf(record, own, decisions);
  const fences = attempts.map(({ fence }) => fence);
  /** A decision is taken about the attempt before it. */
  const attemptAt = (fence: number) => fences.findLast((each) => each <= fence) ?? record.generation;

  const raw: Raw[] = [
    ...starts(attempts, decisions, attemptAt),
    ...dispatches(record, own, attempts, attemptAt),
  ];
  for (const event of own) raw.push(...fromEvent(event, attemptAt));
  raw.push(...ends(record, own, decisions, attemptAt));

  const moments = raw
    .map((each, n) => ({ ...each, n }))
    .sort((a, b) => a.order - b.order || rank(a) - rank(b) || a.n - b.n);
  const shown = fences.slice(-maxLanes);
  const owners = ownersOf(record, own, attemptAt);
  const lanes = shown.map((fence): Lane => {
    const places = moments.flatMap((each, at) => (each.fence === fence ? [at] : []));
    const n = fences.indexOf(fence) + 1;
    return {
      ...{ attempt: n, fence, owner: owners.get(fence) },
      first: places[0] ?? 0,
      last: places.at(-1) ?? 0,
    };
  });
  return {
    lanes,
    moments: moments.map(({ at, what, fence, isAlarm }) => ({
      at,
      what,
      lane: fence === undefined || !shown.includes(fence) ? undefined : shown.indexOf(fence),
      ...(isAlarm === undefined ? {} : { isAlarm }),
    })),
  };
}

/** At one instant, an attempt starts before anything else that it does. */
function rank({ fence, what }: Raw): number {
  return (fence ?? 0) * 2 + (what.startsWith('claim:') ? 0 : 1);
}

function attemptsOf(
  record: RecordInfo,
  own: readonly HistoryEvent[],
  decisions: readonly HistoryEvent[],
): readonly Attempt[] {
  const decided = new Map(decisions.map((event) => [event.fence, event]));
  const takeovers = new Map(
    own.filter(({ type }) => type === 'takeover').map((event) => [event.fence, event]),
  );
  const attempts: Attempt[] = [];
  let notBefore = timeOf(record.createdAt) ?? 0;
  for (let fence = record.generation; fence <= record.fence; fence += 1) {
    const decision = decided.get(fence);
    const takeover = takeovers.get(fence);
    notBefore = Math.max(notBefore, decision?.at ?? takeover?.at ?? 0);
    if (decision !== undefined) continue;
    const startedAt = fence === record.generation ? timeOf(record.createdAt) : takeover?.at;
    attempts.push({ fence, n: attempts.length + 1, takeover, startedAt, notBefore });
  }
  return attempts;
}

function starts(
  attempts: readonly Attempt[],
  decisions: readonly HistoryEvent[],
  attemptAt: (fence: number) => number,
): readonly Raw[] {
  const hidden = Math.max(0, attempts.length - 1 - maxAttempts);
  return attempts.flatMap(({ fence, n, takeover, startedAt, notBefore }): Raw[] => {
    if (n > 1 && n <= hidden) return [];
    if (n > 1 && n === hidden + 1) {
      const what = `${hidden.toLocaleString('en')} attempts before this are not shown`;
      return [{ at: undefined, order: notBefore, fence, what }];
    }
    const start = (what: string): Raw => ({
      ...{ at: startedAt, order: notBefore, fence },
      what: `claim: ${what}`,
    });
    if (n === 1) return [start('attempt 1 starts')];
    if (takeover === undefined) {
      const isAfterVerdict = decisions.some((event) => event.fence === fence - 1);
      return [
        start(
          `attempt ${n} starts, ${isAfterVerdict ? 'as decided' : 'because the one before did not land'}`,
        ),
      ];
    }
    const { detail, at } = takeover;
    const before = attemptAt(Number(detail.fence));
    const sent = detail.dispatched
      ? 'after it had dispatched: it may have landed'
      : 'before it dispatched anything';
    const isDecided = before !== Number(detail.fence);
    // An attempt that had reported its end did not lose its lease.
    const end: Raw[] = isDecided
      ? []
      : detail.lapsed === false
        ? [{ at: undefined, order: at, fence: before, what: 'ended, and nobody knows whether it landed' }]
        : [{ at, order: at, fence: before, what: `lost its lease ${sent}` }];
    const why =
      detail.for === 'verify'
        ? ', to ask the target'
        : detail.for === 'rerun'
          ? ', to run it again under the same key'
          : '';
    return [...end, start(`attempt ${n} takes over${why}`)];
  });
}

/** The record keeps its first open dispatch and its last one; a decision keeps the last one before it. */
function dispatches(
  record: RecordInfo,
  own: readonly HistoryEvent[],
  attempts: readonly Attempt[],
  attemptAt: (fence: number) => number,
): readonly Raw[] {
  const found = new Map<number, number | undefined>();
  for (const { type, detail } of own) {
    const before =
      type === 'resolved' ? (detail.before as Readonly<Record<string, unknown>> | undefined) : undefined;
    if (
      typeof before?.dispatchedAt === 'number' &&
      typeof before.fence === 'number' &&
      before.dispatchedAt > 0
    )
      if (!found.has(before.dispatchedAt)) found.set(before.dispatchedAt, attemptAt(before.fence));
  }
  const first = timeOf(record.firstDispatchedAt);
  const last = timeOf(record.lastDispatchedAt);
  // A claim of a free record starts the first dispatch anew, and so does "not landed" of a verifier.
  const cleared = own.findLast(({ type }) => type === 'cleared')?.fence ?? 0;
  const fresh = attempts.findLast(
    ({ takeover }) => takeover?.detail.for !== 'verify' && takeover?.detail.for !== 'rerun',
  );
  const base = Math.max(cleared, fresh?.fence ?? 0);
  const open = attempts.filter(({ fence }) => fence >= base);
  const closed = attempts.filter(({ fence }) => fence < base);
  const among = (first === undefined && closed.length > 0 ? closed : open) as readonly Attempt[];
  for (const at of [first, last])
    if (at !== undefined && !found.has(at))
      found.set(at, (among.findLast(({ notBefore }) => notBefore <= at) ?? among[0])?.fence);
  return [...found]
    .sort(([a], [b]) => a - b)
    .map(([at, fence], n) => ({
      ...{ at, order: at, fence },
      what: n === 0 ? 'dispatched: from here on it may land' : 'dispatched again',
    }));
}

function ends(
  record: RecordInfo,
  own: readonly HistoryEvent[],
  decisions: readonly HistoryEvent[],
  attemptAt: (fence: number) => number,
): readonly Raw[] {
  const isDecided = decisions.some(({ fence }) => fence === record.fence);
  const raw: Raw[] = [];
  const settledAt = timeOf(record.settledAt);
  const end = endings[record.status];
  if (settledAt !== undefined && end !== undefined) {
    const what = record.error === undefined ? end : `${end} (${record.error.code}: ${record.error.message})`;
    // Whose success it was: it arrived late, and settled the record.
    const news = own.findLast(({ type, at }) => type === 'lateNews' && at === settledAt);
    const fence = news === undefined ? (isDecided ? undefined : record.fence) : attemptAt(fenceOf(news));
    raw.push({ at: settledAt, order: settledAt, what, fence });
  }
  const updatedAt = timeOf(record.updatedAt);
  if (record.lapsed && updatedAt !== undefined)
    raw.push({
      ...{ at: updatedAt, order: updatedAt },
      what: 'last sign of life; then its lease ended',
      fence: record.fence,
    });
  return raw;
}

function ownersOf(
  record: RecordInfo,
  own: readonly HistoryEvent[],
  attemptAt: (fence: number) => number,
): ReadonlyMap<number, string> {
  const owners = new Map<number, string>();
  for (const { type, detail } of own)
    if (type === 'takeover' && typeof detail.from === 'string')
      owners.set(attemptAt(Number(detail.fence)), detail.from);
  return owners.set(attemptAt(record.fence), record.owner);
}

/** An unknown instant is stored as the epoch. */
function timeOf(text: string | undefined): number | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) || at <= 0 ? undefined : at;
}

/** The attempt that a report is about. */
function fenceOf({ fence, detail }: HistoryEvent): number {
  return typeof detail.fence === 'number' ? detail.fence : fence;
}

function fromEvent(event: HistoryEvent, attemptAt: (fence: number) => number): readonly Raw[] {
  const { at, type, detail } = event;
  const say = (what: string, fence?: number, isAlarm = false): Raw => ({
    ...{ at, order: at, what, isAlarm },
    fence: fence === undefined ? undefined : attemptAt(fence),
  });
  switch (type) {
    case 'takeover':
    case 'replayed':
      return [];
    case 'fenced':
      return [say(`reported ${String(detail.outcome)} after it had lost the claim`, fenceOf(event))];
    case 'lateNews':
      return [say('late news: it had succeeded', fenceOf(event))];
    case 'duplicate':
      return [say('DUPLICATE: it landed a second time', event.fence, true)];
    case 'contradiction':
      return [
        say(
          `CONTRADICTION: reports ${String(detail.outcome)}, against what was settled`,
          fenceOf(event),
          true,
        ),
      ];
    case 'cleared':
      return [say('verify: not landed', event.fence)];
    case 'resolved': {
      const note = [detail.reason, detail.note]
        .filter((word) => typeof word === 'string' && word !== '')
        .join('; ');
      return [
        say(
          `verdict of ${String(detail.by)}: ${acts[String(detail.act)] ?? String(detail.act)}${note === '' ? '' : ` ("${note}")`}`,
        ),
      ];
    }
    case 'poisoned':
      return [say(`given up as poison after ${String(detail.crashes)} crashes`, undefined, true)];
    case 'conflict':
      return [say('refused a call with the same key and other identity arguments')];
    case 'observed':
      return [say(`observed: semel would have said ${String(detail.would)}`)];
    default:
      if ('exit' in detail || 'signal' in detail || 'ended' in detail)
        return [
          say(
            `ended: ${String(detail.ended ?? detail.signal ?? `exit ${String(detail.exit)}`)}`,
            event.fence,
          ),
        ];
      return [say(`noted: ${JSON.stringify(detail)}`)];
  }
}
