// Requests of Node.js, and of Express on top of it: their bytes, if they are still available.

import type { IncomingMessage } from 'node:http';

/** `rawBody` is what several parsers leave beside the parsed body. */
export interface NodeRequest extends IncomingMessage {
  readonly originalUrl?: string;
  readonly rawBody?: unknown;
  body?: unknown;
}

/** The bytes that a parser kept, or the parsed body. Undefined: the body has not been read. */
export function findBody(request: {
  readonly rawBody?: unknown;
  readonly body?: unknown;
}): { raw: Uint8Array } | { parsed: unknown } | undefined {
  for (const given of [request.rawBody, request.body]) {
    if (typeof given === 'string') return { raw: Buffer.from(given) };
    if (given instanceof Uint8Array) return { raw: given };
  }
  return request.body === undefined ? undefined : { parsed: request.body };
}

/**
 * The same, for a comparison; 'unread' where its bytes can still be read, undefined where not all of it is there. Parsers put the
 * files of a form elsewhere, and those of Express 4 leave `{}` for a body that they do not read.
 */
export function findWholeBody(
  request: Parameters<typeof findBody>[0],
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  isRead: boolean,
): { raw: Uint8Array } | { parsed: unknown } | 'unread' | undefined {
  const found = findBody(request);
  const isAnnounced =
    Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined;
  if (found === undefined) {
    if (!isRead) return 'unread';
    return isAnnounced ? undefined : { raw: new Uint8Array() };
  }
  if ('raw' in found) return found;
  if (!isRead && isAnnounced && isEmptyObject(found.parsed)) return 'unread';
  // Parsers take it in any case.
  return /^multipart\//i.test(String(headers['content-type'])) ? undefined : found;
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

/** Reads no more than requested, and stays open when reading stops: the answer must still be sent. */
export function streamOf(request: IncomingMessage): ReadableStream<Uint8Array> {
  const listeners: [string, (...args: never[]) => void][] = [];
  const stop = () => {
    request.pause();
    for (const [event, listener] of listeners) request.off(event, listener as () => void);
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const on = (event: string, listener: (...args: never[]) => void) => {
          listeners.push([event, listener]);
          request.on(event, listener as () => void);
        };
        const fail = () => {
          stop();
          controller.error(new Error('the client hung up'));
        };
        on('data', (chunk: Uint8Array) => {
          controller.enqueue(chunk);
          if ((controller.desiredSize ?? 0) <= 0) request.pause();
        });
        on('end', () => {
          stop();
          controller.close();
        });
        on('error', fail);
        on('close', fail);
      },
      pull: () => void request.resume(),
      cancel: stop,
    },
    // By bytes: a client may send one at a time, and to pause after each takes longer than to read it.
    { highWaterMark: 65_536, size: (chunk) => chunk.byteLength },
  );
}

/** For a receiver that reads the body itself. */
export function toWebRequest(request: NodeRequest, url: string): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(request.headersDistinct))
    for (const value of values ?? []) headers.append(name, value);
  const method = request.method ?? 'GET';
  // The client chooses the host, so it means nothing here.
  const address = new URL(url, 'http://localhost');
  if (method === 'GET' || method === 'HEAD') return new Request(address, { method, headers });
  const found = findBody(request);
  const body = found === undefined ? streamOf(request) : 'raw' in found ? found.raw : undefined;
  const made = new Request(address, { method, headers, body: body ?? '', duplex: 'half' } as RequestInit);
  // Its bytes are gone: reading it again says so.
  if (body === undefined) void made.text();
  return made;
}
