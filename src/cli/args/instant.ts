// Instants as logs and people write them. Refuses what could be read in two ways, except that a time without a zone
// is taken for UTC: what counts between two lines of one log is the distance.

const longestText = 64;
const second = 1_000;
/** From 2001 to 2286 in each unit: no instant of that time can be taken for one in another unit. */
const least = 1e9;

export function instantOf(value: unknown): number | undefined {
  if (typeof value === 'number') return fromEpoch(value);
  if (typeof value !== 'string' || value.length > longestText) return undefined;
  const text = value.trim();
  const written = writtenInstant(text);
  if (written !== undefined) return written.at;
  // As in the logs of web servers and of mail.
  const common = /^(\d\d)\/(\w{3})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$/.exec(text);
  if (common !== null) {
    const [, day, month, year, time, zone] = common;
    return known(Date.parse(`${day} ${month} ${year} ${time} ${zone}`));
  }
  return /^\w{3},? /.test(text) ? known(Date.parse(text)) : undefined;
}

interface WrittenInstant {
  /** Without a zone: as if the clock that shows it were one of UTC. */
  readonly at: number;
  readonly hasZone: boolean;
}

/** As people write it after an option: ISO 8601, or a count since 1970. */
export function writtenInstant(text: string): WrittenInstant | undefined {
  if (text.length > longestText) return undefined;
  if (/^\d{9,19}(\.\d+)?$/.test(text)) return instant(fromEpoch(Number(text)), true);
  const [, date, time = '00:00', zone] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(Z|[+-]\d\d:?\d\d)?)?$/i.exec(text) ?? [];
  if (date === undefined || !isOfCalendar(date)) return undefined;
  const at = Date.parse(`${date}T${time.replace(',', '.')}${(zone ?? 'Z').toUpperCase()}`);
  return instant(known(at), zone !== undefined);
}

function instant(at: number | undefined, hasZone: boolean): WrittenInstant | undefined {
  return at === undefined ? undefined : { at, hasZone };
}

/** Date.parse takes 31 February for 3 March. */
function isOfCalendar(date: string): boolean {
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

function known(ms: number): number | undefined {
  return Number.isNaN(ms) ? undefined : ms;
}
