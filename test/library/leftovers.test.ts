// What a run leaves behind when it ends: requests that were started and not awaited.

import { setTimeout as sleep } from 'node:timers/promises';
import type { AttemptContext } from 'semel';
import { beforeAll, expect, test } from 'vitest';
import { quick, type Target, target } from './support.ts';

let server: Target;
beforeAll(async () => {
  server = await target((request, response) => {
    if (request.url === '/moved') response.writeHead(303, { location: '/limited' });
    else response.writeHead(request.url === '/limited' ? 429 : 200);
    response.end('{}');
  });
});

const contract = { effect: 'irreversible', per: 'ever' } as const;

async function post(ctx: AttemptContext, path: string): Promise<void> {
  const response = await ctx.fetch(`${server.url}${path}`, { method: 'POST' });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
}

const landed = (path: string) => server.requests.filter((request) => request.path === path).length;

test('a request that would leave after its run was released is not sent', async () => {
  await using semel = quick();
  let later = Promise.withResolvers<void>();
  const tool = semel.tool({
    ...contract,
    name: 'both',
    via: 'fetch',
    run: (_: { id: number }, ctx) =>
      Promise.all([post(ctx, '/limited'), later.promise.then(() => post(ctx, '/late'))]),
  });
  for (let call = 0; call < 2; call += 1) {
    later = Promise.withResolvers<void>();
    const result = await tool.try({ id: 1 });
    expect(result.ok ? 'ok' : result.error.code).toBe('NOT_LANDED');
    later.resolve();
    await sleep(20);
  }
  expect(landed('/late')).toBe(0);
});

test('a request that was about to cross the line when its run threw is not sent', async () => {
  await using semel = quick();
  const tool = semel.tool({
    ...contract,
    name: 'crossing',
    dispatch: 'explicit',
    run: (_: { id: number }, ctx) =>
      Promise.all([post(ctx, '/crossing'), Promise.reject(new Error('template missing'))]),
  });
  for (let call = 0; call < 2; call += 1) {
    const result = await tool.try({ id: 1 });
    expect(result.ok ? 'ok' : result.error.code).toBe('NOT_LANDED');
    await sleep(40);
  }
  expect(landed('/crossing')).toBe(0);
});

test('the target of a redirect says nothing about the redirected request', async () => {
  await using semel = quick();
  const tool = semel.tool({
    ...contract,
    name: 'moved',
    run: (_: { id: number }, ctx) => post(ctx, '/moved'),
  });
  for (let call = 0; call < 2; call += 1) {
    const result = await tool.try({ id: 1 });
    expect(result.ok ? 'ok' : result.error.code).toBe('IN_DOUBT');
  }
  expect(landed('/moved')).toBe(1);
});

test('begin prepares and crosses the line before the framework runs the effect', async () => {
  await using semel = quick();
  let prepared = 0;
  const tool = semel.tool({
    ...contract,
    name: 'letter',
    prepare: () => `Dear Ann ${++prepared}`,
    run: (_: { id: number }, ctx) => ctx.prepared,
  });
  const begun = await semel.begin(tool, { id: 1 });
  if (!begun.execute) throw new Error('expected to execute');
  expect(begun.attempt.prepared).toBe('Dear Ann 1');
  const { items } = await semel.records.list();
  expect(items[0]?.lastDispatchedAt).toBeInstanceOf(Date);
  await begun.attempt.succeed('sent');
  expect(await tool({ id: 1 })).toBe('sent');
});

test('begin on an explicit line: success without having crossed it is in doubt', async () => {
  await using semel = quick();
  const tool = semel.tool({
    ...contract,
    name: 'explicit',
    dispatch: 'explicit',
    run: (_: { id: number }) => 'x',
  });
  const begun = await semel.begin(tool, { id: 1 });
  if (!begun.execute) throw new Error('expected to execute');
  const result = await begun.attempt.succeed('sent');
  expect(result.ok ? 'ok' : result.error.code).toBe('IN_DOUBT');
});
