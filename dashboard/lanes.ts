// The history of a record, as one lane per attempt. Pure.

import type { HistoryEvent, RecordInfo } from './answers.ts';

export interface Moment {
  readonly at: number;
  readonly what: string;
  /** Undefined: a person, or somebody who asked again. */
  readonly lane: number | undefined;
  readonly isAlarm?: boolean;
}

export interface Lane {
  readonly fence: number;
  readonly owner: string | undefined;
  /** The first and the last of its moments. */
  readonly first: number;
  readonly last: number;
}

interface Raw {
  readonly at: number;
  readonly what: string;
  readonly fence: number | undefined;
  readonly isAlarm?: boolean;
}

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

export function lanesOf(
  record: RecordInfo,
  history: readonly HistoryEvent[],
): { readonly lanes: readonly Lane[]; readonly moments: readonly Moment[] } {
  const raw: Raw[] = [];
  const owners = new Map<number, string>();
  const time = (text: string | undefined) => (text === undefined ? Number.NaN : Date.parse(text));
  const own = history.filter(({ generation }) => generation === record.generation);
  const takeovers = own.filter(({ type }) => type === 'takeover');
  const first =
    takeovers.length === 0 ? record.fence : Number(takeovers[0]?.detail.fence ?? record.generation);
  const lastAttempt = own.some(({ type }) => type === 'resolved') ? undefined : record.fence;
  raw.push({ at: time(record.createdAt), what: 'claim: the first attempt starts', fence: first });
  if (record.firstDispatchedAt !== undefined)
    raw.push({
      at: time(record.firstDispatchedAt),
      what: 'dispatched: from here on it may land',
      fence: first,
    });
  for (const event of own) raw.push(...fromEvent(event, owners));
  const last = takeovers.length === 0 ? first : Number(takeovers.at(-1)?.fence ?? record.fence);
  if (
    record.lastDispatchedAt !== undefined &&
    record.firstDispatchedAt !== undefined &&
    record.lastDispatchedAt !== record.firstDispatchedAt
  )
    raw.push({ at: time(record.lastDispatchedAt), what: 'dispatched again', fence: last });
  const end = endings[record.status];
  if (record.settledAt !== undefined && end !== undefined)
    raw.push({
      at: time(record.settledAt),
      what: record.error === undefined ? end : `${end} (${record.error.code}: ${record.error.message})`,
      fence: lastAttempt === undefined ? undefined : last,
    });
  if (record.lapsed)
    raw.push({ at: time(record.updatedAt), what: 'last sign of life; then its lease ended', fence: last });
  owners.set(last, record.owner);

  const known = raw.filter(({ at }) => !Number.isNaN(at)).sort((a, b) => a.at - b.at);
  const fences = [...new Set(known.flatMap(({ fence }) => (fence === undefined ? [] : [fence])))].sort(
    (a, b) => a - b,
  );
  const lanes = fences.map((fence): Lane => {
    const places = known.flatMap((each, at) => (each.fence === fence ? [at] : []));
    return { fence, owner: owners.get(fence), first: places[0] ?? 0, last: places.at(-1) ?? 0 };
  });
  const moments = known.map(({ fence, ...moment }) => ({
    ...moment,
    lane: fence === undefined ? undefined : fences.indexOf(fence),
  }));
  return { lanes, moments };
}

function fromEvent({ at, type, fence, detail }: HistoryEvent, owners: Map<number, string>): readonly Raw[] {
  const say = (what: string, lane: number | undefined = undefined, isAlarm = false): Raw => ({
    at,
    what,
    fence: lane,
    isAlarm,
  });
  const named = typeof detail.fence === 'number' ? detail.fence : fence;
  switch (type) {
    case 'takeover': {
      if (typeof detail.from === 'string') owners.set(named, detail.from);
      const sent = detail.dispatched
        ? 'after it had dispatched: it may have landed'
        : 'before it dispatched anything';
      const why =
        detail.for === 'verify'
          ? ', to ask the target'
          : detail.for === 'rerun'
            ? ', to run it again under the same key'
            : '';
      return [say(`lost its lease ${sent}`, named), say(`claim: the next attempt takes over${why}`, fence)];
    }
    case 'fenced':
      return [say(`reported ${String(detail.outcome)} after it had lost the claim`, named)];
    case 'lateNews':
      return [say('late news: it had succeeded', named)];
    case 'duplicate':
      return [say('DUPLICATE: it landed a second time', named, true)];
    case 'contradiction':
      return [say(`CONTRADICTION: reports ${String(detail.outcome)}, against what was settled`, named, true)];
    case 'cleared':
      return [say('verify: not landed', fence)];
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
    case 'replayed':
      return [];
    case 'conflict':
      return [say('refused a call with the same key and other identity arguments')];
    case 'observed':
      return [say(`observed: semel would have said ${String(detail.would)}`)];
    default:
      if ('exit' in detail || 'signal' in detail || 'ended' in detail)
        return [
          say(`ended: ${String(detail.ended ?? detail.signal ?? `exit ${String(detail.exit)}`)}`, fence),
        ];
      return [say(`noted: ${JSON.stringify(detail)}`)];
  }
}
