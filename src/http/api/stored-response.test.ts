import { expect, test } from 'vitest';
import { toResponse } from '../problem.ts';
import { listReplayed, toReplay, toStored } from './stored-response.ts';

const replayed = listReplayed('orders', ['X-Order']);

test('bytes come back as they were, text or not', () => {
  const bodies = [
    Buffer.from('plain'),
    Buffer.from('\uFEFFGröße \u0000'),
    Buffer.from([0xff, 0xfe, 0, 1]),
    Buffer.alloc(0),
  ];
  for (const body of bodies) {
    const stored = JSON.parse(JSON.stringify(toStored({ status: 200, headers: [], body }, replayed)));
    expect(Buffer.from(toReplay(stored, replayed)?.body ?? [])).toEqual(body);
  }
});

test('only listed headers are stored, whatever their case', () => {
  const headers = [
    ['Content-Type', 'text/plain'],
    ['Set-Cookie', 'session=ann'],
    ['X-ORDER', '1'],
    ['x-other', '2'],
  ] as const;
  expect(toStored({ status: 200, headers, body: new Uint8Array() }, replayed).headers).toEqual([
    ['content-type', 'text/plain'],
    ['x-order', '1'],
  ]);
});

test('a record that was written elsewhere brings no cookie, no other header and no line break', () => {
  const headers = [
    ['set-cookie', 'session=eve'],
    ['x-other', '1'],
    ['location', '/orders/1\r\nset-cookie: session=eve'],
    ['etag', '"ключ"'],
    ['x-order', '1'],
    [7, '1'],
  ];
  const answer = toReplay({ status: 200, headers, body: '', encoding: 'utf8' }, replayed);
  expect(answer?.headers).toEqual([
    ['x-order', '1'],
    ['idempotent-replayed', 'true'],
  ]);
  expect(toResponse(answer as never).status).toBe(200);
});

test('what is not a response is not replayed', () => {
  const body = { body: '', encoding: 'utf8', headers: [] };
  const wrong = [
    undefined,
    null,
    'text',
    { ...body, status: 99 },
    { ...body, status: 700 },
    { ...body, status: '200' },
    { ...body, status: 200, headers: 'x' },
    { ...body, status: 200, headers: [null] },
    { status: 200, headers: [] },
  ];
  for (const stored of wrong) {
    const answer = toReplay(stored, replayed);
    if (answer !== undefined) expect(answer.headers).toEqual([['idempotent-replayed', 'true']]);
  }
});

test('headers of one session or one connection cannot be listed', () => {
  for (const name of ['Set-Cookie', 'connection', 'Transfer-Encoding', 'content-length', 'a b', 'x\r\ny', ''])
    expect(() => listReplayed('orders', [name])).toThrow(/headers|header/);
});

test('a status without a body is replayed without one', () => {
  const stored = toStored({ status: 204, headers: [], body: new Uint8Array() }, replayed);
  expect(toResponse(toReplay(stored, replayed) as never)).toMatchObject({ status: 204, body: null });
});
