// Reads a body to its end, within a size, a time, and what the process receives at once: nobody has proven yet who sends it. What
// is refused is not kept.

import { createByteCollector } from '../core/byte-collector.ts';
import { systemClock } from '../core/clock.ts';
import { SemelError } from '../core/errors.ts';
import { createReservation } from '../core/reservations.ts';

export interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/** Not read to its end: the status says why. */
export class BodyRefused extends SemelError {
  readonly status: number;

  constructor(status: number, happened: string, next: string) {
    // A request that was refused for lack of room has nothing to correct.
    super(status === 503 ? 'ABORTED' : 'INVALID_ARGS', happened, { path: 'body', next });
    this.status = status;
  }
}

/** The bytes as they were sent. */
export async function readBody(request: Request, limits: BodyLimits): Promise<Uint8Array> {
  if (request.bodyUsed)
    throw new SemelError('CONTRACT_INVALID', 'The body of the request was already read.', {
      path: 'body',
      next: 'Pass the request before anything parses its body: semel needs the raw bytes.',
    });
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const body = createByteCollector();
  const held = createReservation();
  let refusal: BodyRefused | undefined;
  const stop = (reason: BodyRefused) => {
    refusal ??= reason;
    // Ends a read that is waiting. Not awaited: a source that does not end would hold the answer back.
    reader.cancel().catch(() => undefined);
  };
  const timer = systemClock.setTimeout(() => stop(tooSlow()), limits.timeoutMs);
  const endReceiving = held.receive(() => stop(tooMany()));
  try {
    if (Number(request.headers.get('content-length') ?? 0) > limits.maxBytes) stop(tooLarge(limits));
    for (;;) {
      const { done, value } = await reader.read();
      if (refusal !== undefined) throw refusal;
      if (done) return body.take();
      if (body.size + value.byteLength > limits.maxBytes) stop(tooLarge(limits));
      else if (held.take(value.byteLength)) body.add(value);
      else stop(tooMany());
    }
  } catch (error) {
    if (error instanceof BodyRefused) throw error;
    throw new BodyRefused(400, 'The body broke off.', 'Send the request again.');
  } finally {
    systemClock.clearTimeout(timer);
    endReceiving();
    held.end();
  }
}

function tooLarge({ maxBytes }: BodyLimits): BodyRefused {
  return new BodyRefused(413, `The body has more than ${maxBytes} bytes.`, 'Send a smaller one.');
}

function tooSlow(): BodyRefused {
  return new BodyRefused(408, 'The body took too long.', 'Send the request again.');
}

function tooMany(): BodyRefused {
  return new BodyRefused(503, 'Too much is being received at once.', 'Send the request again later.');
}
