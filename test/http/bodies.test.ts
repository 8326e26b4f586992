// What counts as the body that a key was used for, whatever parsers did with it before.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import fastify from 'fastify';
import { type Context, Hono } from 'hono';
import type { Semel } from 'semel';
import {
  type IdempotentOptions,
  idempotent,
  idempotentExpress,
  idempotentFastify,
  idempotentHono,
} from 'semel/http';
import { afterEach, describe, expect, test } from 'vitest';
import { rig } from '../library/support.ts';

type Parser = (request: Request & { file?: Buffer }, response: Response, next: NextFunction) => void;
type Options = Partial<IdempotentOptions<unknown>>;

const closing: (() => Promise<unknown>)[] = [];
const errors: string[] = [];
let handled: unknown[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  handled = [];
  errors.length = 0;
});

const terms = {
  name: 'orders.create',
  caller: 'anonymous',
  onError: ({ path }: { path?: string | undefined }) => void errors.push(path ?? ''),
} as const;

async function startExpress(semel: Semel, parser: Parser, options: Options = {}): Promise<string> {
  const app = express();
  app.use(parser as never);
  app.post(
    '/orders',
    idempotentExpress(semel, { ...terms, ...options }, (request: Request, response: Response) => {
      handled.push(Buffer.isBuffer(request.body) ? String(request.body) : request.body);
      response.status(201).json({ order: handled.length });
    }),
  );
  const server: Server = createServer(app).listen(0);
  await new Promise((resolve) => server.once('listening', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function post(url: string, type: string, body: string): Promise<number> {
  const headers = { 'idempotency-key': 'k-1', 'content-type': type };
  const response = await fetch(`${url}/orders`, { method: 'POST', headers, body });
  await response.text();
  return response.status;
}

const form = 'multipart/form-data; boundary=x';

/** As multer does: the fields here, the file there. */
const takeFile: Parser = (request, _, next) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    request.body = { title: 'invoice' };
    request.file = Buffer.concat(chunks);
    next();
  });
};

describe('a body', () => {
  test('that a parser of Express 4 does not read and replaces with {} is compared by its bytes', async () => {
    const { semel } = rig();
    const url = await startExpress(semel, (request, _, next) => {
      request.body = request.body ?? {};
      next();
    });
    expect(await post(url, 'text/plain', 'item=lamp')).toBe(201);
    expect(await post(url, 'text/plain', 'item=lamp')).toBe(201);
    expect(await post(url, 'text/plain', 'item=chair')).toBe(422);
    expect(handled).toEqual(['item=lamp']);
  });

  test('that is empty, or an empty object, stays what the parser made of it', async () => {
    const { semel } = rig();
    const url = await startExpress(semel, express.json());
    expect(await post(url, 'application/json', '{}')).toBe(201);
    expect(await post(url, 'application/json', '{}')).toBe(201);
    expect(await post(url, 'application/json', '{"a":1}')).toBe(422);
    expect(handled).toEqual([{}]);
  });

  test('whose file a parser has put elsewhere is refused, unless the program says what to compare', async () => {
    const { semel } = rig();
    const url = await startExpress(semel, takeFile);
    expect(await post(url, form, 'a file')).toBe(500);
    expect(await post(url, form.replace('multipart', 'MultiPart'), 'a file')).toBe(500);
    expect([handled, errors]).toEqual([[], ['fingerprint', 'fingerprint']]);
    const fingerprint = (request: unknown) => String((request as { file: Buffer }).file);
    const compared = await startExpress(semel, takeFile, { name: 'files.create', fingerprint });
    expect(await post(compared, form, 'a file')).toBe(201);
    expect(await post(compared, form, 'a file')).toBe(201);
    expect(await post(compared, form, 'another file')).toBe(422);
    expect(handled).toHaveLength(1);
  });

  test('that somebody has read and thrown away is refused', async () => {
    const { semel } = rig();
    const url = await startExpress(semel, (request, _, next) => {
      request.on('end', next).resume();
    });
    expect(await post(url, 'text/plain', 'item=lamp')).toBe(500);
    expect(handled).toEqual([]);
  });

  test('that Fastify leaves to a plugin is refused, unless the program says what to compare', async () => {
    const { semel } = rig();
    const app = fastify();
    app.addContentTypeParser('multipart/form-data', (_request, _payload, done) => done(null));
    const guarded = idempotentFastify(semel, terms, async () => void handled.push(1));
    app.post('/orders', guarded as never);
    closing.push(() => app.close());
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect(await post(url, form, 'a file')).toBe(500);
    expect([handled, errors]).toEqual([[], ['fingerprint']]);
  });

  const read = async (request: { formData(): Promise<FormData> }) => (await request.formData()).get('item');
  const named = (name: string) => ({ name, caller: 'anonymous' }) as const;

  test.each([
    [
      'of a web request',
      (semel: Semel) =>
        idempotent(semel, { ...named('web'), fingerprint: read }, async (request) => {
          handled.push(await read(request));
          return new globalThis.Response();
        }),
    ],
    [
      'in Hono',
      (semel: Semel) => {
        const fingerprint = (c: Context) => read(c.req);
        const handle = idempotentHono(semel, { ...named('hono'), fingerprint }, async (c) => {
          handled.push(await read(c.req));
          return c.body(null);
        });
        const app = new Hono().post('/orders', handle);
        return async (request: globalThis.Request) => app.fetch(request);
      },
    ],
  ])(
    '%s can be read by a fingerprint and by the handler: a form is written anew at each attempt',
    async (_, make) => {
      const { semel } = rig();
      const handle = make(semel);
      const send = async (item: string) => {
        const body = new FormData();
        body.set('item', item);
        const headers = { 'idempotency-key': 'k-1' };
        const request = new globalThis.Request('https://shop.example/orders', {
          method: 'POST',
          headers,
          body,
        });
        return (await handle(request)).status;
      };
      expect([await send('lamp'), await send('lamp'), await send('chair')]).toEqual([200, 200, 422]);
      expect(handled).toEqual(['lamp']);
    },
  );
});
