// Where one message ends and the next begins, so that a fault hits the same message in every run: how TCP cuts the
// bytes into chunks depends on the machine's mood.

export type Direction = 'request' | 'reply';

/** Takes bytes as they come, gives whole messages; what is not whole yet waits. */
export type Framer = (bytes: Buffer) => Buffer[];

export type Protocol = 'postgres' | 'redis' | 'chunks';

/** One framer per direction of a connection. */
export function framersOf(protocol: Protocol): Record<Direction, Framer> {
  if (protocol === 'redis') return { request: framer(respEnd), reply: framer(respEnd) };
  if (protocol === 'chunks') return { request: (bytes) => [bytes], reply: (bytes) => [bytes] };
  return postgresFramers();
}

/** How long the first message of these bytes is; undefined as long as that cannot be seen. */
type LengthOf = (bytes: Buffer) => number | undefined;

function framer(lengthOf: LengthOf): Framer {
  let waiting: Buffer = Buffer.alloc(0);
  return (bytes) => {
    waiting = Buffer.concat([waiting, bytes]);
    const frames: Buffer[] = [];
    for (;;) {
      const length = waiting.length === 0 ? undefined : lengthOf(waiting);
      if (length === undefined || length > waiting.length) return frames;
      frames.push(waiting.subarray(0, length));
      waiting = waiting.subarray(length);
    }
  };
}

const sslRequest = 80_877_103;

function postgresFramers(): Record<Direction, Framer> {
  let hasBegun = false;
  let asksForTls = false;
  const typed: LengthOf = (bytes) => (bytes.length < 5 ? undefined : 1 + bytes.readInt32BE(1));
  return {
    request: framer((bytes) => {
      if (hasBegun) return typed(bytes);
      // What a connection begins with has no type.
      if (bytes.length < 8) return undefined;
      asksForTls = bytes.readInt32BE(4) === sslRequest;
      hasBegun = !asksForTls;
      return bytes.readInt32BE(0);
    }),
    reply: framer((bytes) => {
      if (!asksForTls) return typed(bytes);
      asksForTls = false;
      return 1;
    }),
  };
}

/** RESP2 and RESP3; a command typed by hand is a message of one line. */
function respEnd(bytes: Buffer, start = 0): number | undefined {
  const line = bytes.indexOf('\r\n', start);
  if (line === -1) return undefined;
  const type = String.fromCharCode(bytes[start] as number);
  const after = line + 2;
  const count = Number(bytes.toString('latin1', start + 1, line));
  if ('$=!'.includes(type)) {
    const end = count < 0 ? after : after + count + 2;
    return end > bytes.length ? undefined : end;
  }
  if (!'*~>%|'.includes(type)) return after;
  let end: number | undefined = after;
  const parts = '%|'.includes(type) ? count * 2 : count;
  for (let part = 0; part < parts && end !== undefined; part++) end = respEnd(bytes, end);
  // Attributes stand before what they are about.
  return type === '|' && end !== undefined ? respEnd(bytes, end) : end;
}
