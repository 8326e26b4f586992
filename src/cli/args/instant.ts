// Instants as logs and people write them. Refuses ambiguous ones, except that a time without a zone counts as UTC: between
// two lines of one log only the distance matters.

const maxLength = 64;
const second = 1_000;
/** From 2001 to 2286 the units (s, ms, µs, ns) cannot be confused. */
const least = 1e9;

export function instantOf(value: unknown): number | undefined {
  if (typeof value === 'number') return fromEpoch(value);
  if (typeof value !== 'string' || value.length > maxLength) return undefined;
  const text = value.trim();
  const parsed = parseInstant(text);
  if (parsed !== undefined) return parsed.at;
  // As in web server and mail logs.
  const common = /^(\d\d)\/(\w{3})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$/.exec(text);
  if (common !== null) {
    const [, day, month, year, time, zone] = common;
    return unlessNaN(Date.parse(`${day} ${month} ${year} ${time} ${zone}`));
  }
  return /^\w{3},? /.test(text) ? unlessNaN(Date.parse(text)) : undefined;
}

interface ParsedInstant {
  /** Without a zone: as if it were UTC. */
  readonly at: number;
  readonly hasZone: boolean;
}

/** ISO 8601, or a count since 1970. */
export function parseInstant(text: string): ParsedInstant | undefined {
  if (text.length > maxLength) return undefined;
  if (/^\d{9,19}(\.\d+)?$/.test(text)) return instant(fromEpoch(Number(text)), true);
  const [, date, time = '00:00', zone] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(Z|[+-]\d\d:?\d\d)?)?$/i.exec(text) ?? [];
  if (date === undefined || !isCalendarDate(date)) return undefined;
  const at = Date.parse(`${date}T${time.replace(',', '.')}${(zone ?? 'Z').toUpperCase()}`);
  return instant(unlessNaN(at), zone !== undefined);
}

function instant(at: number | undefined, hasZone: boolean): ParsedInstant | undefined {
  return at === undefined ? undefined : { at, hasZone };
}

/** Date.parse reads 31 February as 3 March. */
function isCalendarDate(date: string): boolean {
  const at = Date.parse(`${date}T00:00Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date);
}

function fromEpoch(count: number): number | undefined {
  for (const perMs of [1 / second, 1, second, second * second]) {
    const ms = count / perMs;
    if (ms >= least * second && ms < 10 * least * second) return ms;
  }
  return undefined;
}

function unlessNaN(ms: number): number | undefined {
  return Number.isNaN(ms) ? undefined : ms;
}
