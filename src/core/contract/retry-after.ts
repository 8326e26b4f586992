// How long a target asks its clients to wait, as its answer or an SDK's error says.

/** Longer waits are mistakes, or dates of a wrong clock. */
const longestMs = 24 * 3_600_000;

/** `Retry-After` in seconds or as a date, or `retry-after-ms` of some APIs. */
export function readRetryAfterHeader(headers: unknown, now: number): number | undefined {
  const ms = readNumber(readHeader(headers, 'retry-after-ms'));
  if (ms !== undefined) return limit(ms);
  const text = readHeader(headers, 'retry-after');
  const seconds = readNumber(text);
  if (seconds !== undefined) return limit(seconds * 1_000);
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : limit(at - now);
}

/** From the headers that an error carries, by itself or in its response. Slack has the seconds as a field. */
export function readRetryAfter(error: unknown, now: number): number | undefined {
  try {
    return readFrom(error, now);
  } catch {
    // Anything can be thrown, also what cannot be read.
    return undefined;
  }
}

function readFrom(error: unknown, now: number): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { headers, response, retryAfter } = error as Record<string, unknown>;
  const inResponse =
    typeof response === 'object' && response !== null ? Reflect.get(response, 'headers') : undefined;
  return (
    readRetryAfterHeader(headers, now) ??
    readRetryAfterHeader(inResponse, now) ??
    (typeof retryAfter === 'number' ? limit(retryAfter * 1_000) : undefined)
  );
}

function readHeader(headers: unknown, name: string): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const { get } = headers as { get?: unknown };
  const value: unknown = typeof get === 'function' ? get.call(headers, name) : Reflect.get(headers, name);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function readNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : undefined;
}

function limit(ms: number): number | undefined {
  return ms >= 0 && ms <= longestMs ? Math.ceil(ms) : undefined;
}
