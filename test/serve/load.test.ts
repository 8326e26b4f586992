// Many connections at once: each key has one effect, nobody sees an error, and the server's memory does not grow.
// SEMEL_LOAD_CONNECTIONS=1000 SEMEL_LOAD_SECONDS=60 for the long run, which prints its figures.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { ownSchema } from '../servers/own-place.ts';
import { type Load, load, type Outcome } from './load/clients.ts';
import type { Job, Line, Place } from './load/server.ts';

const connections = Number(process.env.SEMEL_LOAD_CONNECTIONS ?? 200);
const seconds = Number(process.env.SEMEL_LOAD_SECONDS ?? 0);
const token = 'a-token-that-is-long-enough-to-be-one-of-them';
const MiB = 2 ** 20;

test.each(['sqlite', 'postgres'] as const)('%s: many connections, one effect per key', async (kind) => {
  const job: Job = { place: await openPlace(kind), token };
  const server = startNode<Line>(new URL('load/server.ts', import.meta.url), job);
  onTestFinished(async () => void (await server.kill()));
  const { url } = await readLine(server, (line): line is Extract<Line, { url: string }> => 'url' in line);

  let asked = 0;
  const readMemory = async () => {
    asked += 1;
    server.signal('SIGUSR2');
    return readLine(server, (line): line is Memory => 'memory' in line && line.memory === asked);
  };
  const run = (name: string, isOver: Load['isOver']) => load(name, { url, token, connections, isOver });

  const warmUp = await run('warm-up', (calls) => calls >= connections * 4);
  const warm = await readMemory();
  const startedAt = performance.now();
  const main = await run(
    'load',
    seconds > 0
      ? () => performance.now() - startedAt >= seconds * 1_000
      : (calls) => calls >= connections * 15,
  );
  const tookMs = performance.now() - startedAt;
  const end = await readMemory();
  if (seconds > 0) print(kind, main, tookMs, warm, end);

  for (const { effects, keys, calls, replays, errors, opened } of [warmUp, main]) {
    expect(errors.slice(0, 5)).toEqual([]);
    expect(effects.toSorted()).toEqual([...keys].toSorted());
    expect(effects.length + replays).toBe(calls);
    // Both kinds of calls, or nothing is proved.
    expect(replays).toBeGreaterThan(effects.length);
    expect(opened).toBeGreaterThanOrEqual(connections);
  }
  expect(server.lines.filter((line) => 'warning' in line)).toEqual([]);
  // Generous: what a call left behind would be many times as much after so many more calls.
  expect(end.heap).toBeLessThan(warm.heap * 1.5 + 16 * MiB);
  expect(end.rss).toBeLessThan(warm.rss * 1.5 + 64 * MiB);
});

type Memory = Extract<Line, { memory: number }>;

async function readLine<Wanted extends Line>(
  server: ReturnType<typeof startNode<Line>>,
  isWanted: (line: Line) => line is Wanted,
): Promise<Wanted> {
  return (await server.line(isWanted)) as Wanted;
}

async function openPlace(kind: Place['kind']): Promise<Place> {
  if (kind === 'postgres') return { kind, ...(await ownSchema()) };
  const folder = mkdtempSync(join(tmpdir(), 'semel-load-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { kind, path: join(folder, 'ledger.db') };
}

function print(kind: string, outcome: Outcome, tookMs: number, warm: Memory, end: Memory): void {
  const { calls, effects, replays, busy, errors } = outcome;
  const mib = (bytes: number) => `${Math.round(bytes / MiB)} MiB`;
  console.log(
    `${kind}: ${connections} connections, ${(tookMs / 1_000).toFixed(0)} s: ${calls} calls, ${effects.length} effects, ` +
      `${replays} replays, ${busy} told to come back, ${errors.length} errors; ` +
      `RSS ${mib(warm.rss)} → ${mib(end.rss)}, heap ${mib(warm.heap)} → ${mib(end.heap)}`,
  );
}
