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

  const measured = async (name: string) => {
    const startedAt = performance.now();
    const outcome = await run(
      name,
      seconds > 0
        ? () => performance.now() - startedAt >= (seconds / 2) * 1_000
        : (calls) => calls >= connections * 6,
    );
    const tookMs = performance.now() - startedAt;
    const memory = await readMemory();
    if (seconds > 0) print(`${kind}, ${name}`, outcome, tookMs, memory);
    return { outcome, memory };
  };
  const warmUp = await run('warm-up', (calls) => calls >= connections * 4);
  // Equal halves: what a call leaves behind shows between their ends. Before the first, buffers and code still grow.
  const first = await measured('first half');
  const second = await measured('second half');

  for (const { effects, keys, calls, replays, errors, opened } of [warmUp, first.outcome, second.outcome]) {
    expect(errors.slice(0, 5)).toEqual([]);
    expect(effects.toSorted()).toEqual([...keys].toSorted());
    expect(effects.length + replays).toBe(calls);
    // Both kinds of calls, or nothing is proved.
    expect(replays).toBeGreaterThan(effects.length);
    expect(opened).toBeGreaterThanOrEqual(connections);
  }
  // That a call waits for seconds says only that the machine is busy.
  const warnings = server.lines.flatMap((line) => ('warning' in line ? [line.warning] : []));
  expect(warnings.filter((text) => !/ is waiting for an equal one /.test(text))).toEqual([]);
  // Generous: garbage collectors give memory back when they like.
  expect(second.memory.heap).toBeLessThan(first.memory.heap * 1.5 + 16 * MiB);
  expect(second.memory.rss).toBeLessThan(first.memory.rss * 1.5 + 64 * MiB);
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

function print(name: string, outcome: Outcome, tookMs: number, { rss, heap }: Memory): void {
  const { calls, effects, keys, replays, busy, errors } = outcome;
  const mib = (bytes: number) => `${Math.round(bytes / MiB)} MiB`;
  console.log(
    `${name}: ${connections} connections, ${(tookMs / 1_000).toFixed(0)} s: ${calls} calls, ${keys.size} keys, ` +
      `${effects.length} effects, ${replays} replays, ${busy} told to come back, ${errors.length} errors; ` +
      `then RSS ${mib(rss)}, heap ${mib(heap)}`,
  );
}
