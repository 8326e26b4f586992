// What the slots of a job say about time: on which local day each was, whether its run began late, and which slots have no run.
// Pure. The key of a slot has its start in UTC, its name has the local time; the zone itself is in neither.

/** The units whose slots follow each other without a gap: of these, one that is missing was missed. */
export const regularUnits = ['hour', 'day', 'week', 'month'] as const;
type RegularUnit = (typeof regularUnits)[number];

export interface SlotTime {
  readonly startsAt: number;
  /** The local time of its start, as if it were UTC. */
  readonly wall: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

export const dateOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

function isRegular(unit: string | undefined): unit is RegularUnit {
  return (regularUnits as readonly (string | undefined)[]).includes(unit);
}

/** Undefined: a slot without a time, as that of a boot. */
export function slotTimeOf(contract: string, key: string, slot: unknown): SlotTime | undefined {
  const startsAt = Date.parse(key.slice(contract.length + 1).split('/')[0] ?? '');
  if (Number.isNaN(startsAt)) return undefined;
  return { startsAt, wall: wallOf(slot) ?? startsAt };
}

/** `2026-06-19`, `2026-06-19T09+02:00`, `2026-W25`, `2026-06`. */
function wallOf(slot: unknown): number | undefined {
  if (typeof slot !== 'string') return undefined;
  const week = /^(\d{4})-W(\d\d)$/.exec(slot);
  if (week !== null) {
    // The fourth of January is in the first week.
    const fourth = Date.UTC(Number(week[1]), 0, 4);
    const monday = fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * dayMs;
    return monday + (Number(week[2]) - 1) * 7 * dayMs;
  }
  const [, date, hour = '00', minute = '00'] =
    /^(\d{4}-\d\d(?:-\d\d)?)(?:T(\d\d)(?::(\d\d))?)?/.exec(slot) ?? [];
  const at = Date.parse(`${date?.length === 7 ? `${date}-01` : date}T${hour}:${minute}:00Z`);
  return Number.isNaN(at) ? undefined : at;
}

/** A run began late if its slot was over. A day on which the clocks change has up to 25 hours. */
export function isLateStart(
  unit: string | undefined,
  { startsAt, wall }: SlotTime,
  startedAt: number,
): boolean {
  const lengthMs =
    unit === 'minute' ? 60_000 : isRegular(unit) ? nextWall(unit, wall) - wall : Number.POSITIVE_INFINITY;
  const changeMs = lengthMs >= dayMs ? hourMs : 0;
  return startedAt >= startsAt + lengthMs + changeMs;
}

/** How many slots of each local day have no run and are over, from `first` on. */
export function countMissed(
  unit: string | undefined,
  dates: readonly string[],
  known: readonly SlotTime[],
  first: SlotTime | undefined,
  now: number,
): ReadonlyMap<string, number> {
  const missed = new Map<string, number>();
  const last = known.at(-1) ?? first;
  if (!isRegular(unit) || first === undefined || last === undefined) return missed;
  const offset = last.wall - last.startsAt;
  const from = Date.parse(dates[0] ?? '');
  const until = Math.min(now + offset, Date.parse(dates.at(-1) ?? '') + dayMs);
  // Hours by instants: where the clocks change, one has no local time or two.
  const place = (slot: SlotTime) => (unit === 'hour' ? slot.startsAt + offset : slot.wall);
  const begun = new Set(known.map(place));
  for (let wall = place(first); ; wall = nextWall(unit, wall)) {
    if (unit === 'hour' && wall < from) wall += Math.ceil((from - wall) / hourMs) * hourMs;
    if (nextWall(unit, wall) > until) return missed;
    if (wall >= from && !begun.has(wall)) missed.set(dateOf(wall), (missed.get(dateOf(wall)) ?? 0) + 1);
  }
}

function nextWall(unit: RegularUnit, wall: number): number {
  if (unit !== 'month') return wall + { hour: hourMs, day: dayMs, week: 7 * dayMs }[unit];
  const date = new Date(wall);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}
