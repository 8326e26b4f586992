// Instants as logs and people write them. Refuses what could be read in two ways, except that a time without a zone
// is taken for UTC: what counts between two lines of one log is the distance.

const second = 1_000;
/** From 2001 to 2286 in each unit: no instant of that time can be taken for one in another unit. */
const least = 1e9;

export function instantOf(value: unknown): number | undefined {
  if (typeof value === 'number') return fromEpoch(value);
  if (typeof value !== 'string' || value.length > 64) return undefined;
  const text = value.trim();
  if (/^\d{9,19}(\.\d+)?$/.test(text)) return fromEpoch(Number(text));
  const iso = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(Z|[+-]\d\d:?\d\d)?)?$/i.exec(
    text,
  );
  if (iso !== null) {
    const [, date, time = '00:00', zone = 'Z'] = iso;
    return known(Date.parse(`${date}T${time.replace(',', '.')}${zone.toUpperCase()}`));
  }
  // As in the logs of web servers and of mail.
  const common = /^(\d\d)\/(\w{3})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$/.exec(text);
  if (common !== null) {
    const [, day, month, year, time, zone] = common;
    return known(Date.parse(`${day} ${month} ${year} ${time} ${zone}`));
  }
  return /^\w{3},? /.test(text) ? known(Date.parse(text)) : undefined;
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
