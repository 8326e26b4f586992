// What a store said or holds, without what differs from run to run: names, tokens, instants; and without what a call
// says of itself and not of the record. Fences count from the first of their generation.

const passing = /^(key|token|owner|readAt|leaseLeftMs|inFlightMs|inFlightUntil|before|.*At|at)$/;

export function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const { generation } = value as { generation?: unknown };
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, part]) => {
      if (passing.test(name) || name === 'next')
        return [[name, part === null || part === undefined ? null : 'some']];
      if (name === 'generation' || name === 'takeover' || name === 'noted') return [];
      if (/fence$/i.test(name) && typeof part === 'number')
        return [[name, typeof generation === 'number' ? part - generation : 'some']];
      return [[name, plain(part)]];
    }),
  );
}
