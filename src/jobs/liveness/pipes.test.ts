import { execFile, spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hasReader, leavePipes, type PipeSet, sweepPipes, takePipes } from './pipes.ts';

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;
const names = ['life', 'out', 'err', 'descendants'] as const;

let folder: string;
let open: number[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'semel-pipes-'));
});

afterEach(() => {
  for (const each of open) closeSync(each);
  open = [];
  rmSync(folder, { recursive: true, force: true });
});

function held(path: string, flags: number): number {
  const descriptor = openSync(path, flags | O_NONBLOCK);
  open.push(descriptor);
  return descriptor;
}

function letGo(descriptor: number): void {
  open = open.filter((each) => each !== descriptor);
  closeSync(descriptor);
}

const nodesOf = (set: PipeSet) => names.map((name) => statSync(set[name]).ino);

test('what one guard leaves, the next one uses', async () => {
  const first = await takePipes(folder, 'first');
  expect(names.map((name) => statSync(first[name]).mode & 0o777)).toEqual([0o600, 0o600, 0o600, 0o600]);
  const nodes = nodesOf(first);
  leavePipes(first);
  expect(nodesOf(await takePipes(folder, 'second'))).toEqual(nodes);
});

test('a set is taken by one guard only, however many want it', async () => {
  for (let round = 0; round < 5; round += 1) {
    leavePipes(await takePipes(folder, `before ${round}`));
    const sets = await Promise.all(Array.from({ length: 8 }, (_, n) => takePipes(folder, `${round} ${n}`)));
    expect(new Set(sets.flatMap(nodesOf)).size).toBe(8 * names.length);
  }
});

test('a set is taken by one process only, however many want it', async () => {
  // They take and leave as fast as they can, and lay a file into what they have.
  const program = `
    import { rmSync, writeFileSync } from 'node:fs';
    import { leavePipes, takePipes } from ${JSON.stringify(join(import.meta.dirname, 'pipes.ts'))};
    for (let n = 0; n < 200; n += 1) {
      const set = await takePipes(${JSON.stringify(folder)}, process.argv[1] + n);
      writeFileSync(set.folder + '/mine', '', { flag: 'wx' });
      rmSync(set.folder + '/mine');
      leavePipes(set);
    }`;
  const run = (name: string) =>
    promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, name]);
  await Promise.all(['a', 'b', 'c'].map(run));
});

describe.each(names)('the pipe %s', (name) => {
  test('is not used while somebody could read it', async () => {
    const first = await takePipes(folder, 'first');
    const reading = held(first[name], O_RDONLY);
    leavePipes(first);
    const second = await takePipes(folder, 'second');
    expect(nodesOf(second)).not.toContain(fstatSync(reading).ino);
    expect(names.map((each) => hasReader(second[each]))).toEqual([false, false, false, false]);
  });

  test.each(['', 'words'])('is not used while somebody could write to it, and wrote "%s"', async (words) => {
    const first = await takePipes(folder, 'first');
    const reading = held(first[name], O_RDONLY);
    const writing = held(first[name], O_WRONLY);
    writeSync(writing, words);
    letGo(reading);
    leavePipes(first);
    expect(nodesOf(await takePipes(folder, 'second'))).not.toContain(fstatSync(writing).ino);
  });

  test('is empty when it is used again', async () => {
    const first = await takePipes(folder, 'first');
    const ends = [held(first[name], O_RDONLY), held(first[name], O_WRONLY)] as const;
    writeSync(ends[1], 'words of the run before');
    for (const each of ends) letGo(each);
    const nodes = nodesOf(first);
    leavePipes(first);
    const second = await takePipes(folder, 'second');
    expect(nodesOf(second)).toEqual(nodes);
  });

  test('is created again if it was removed', async () => {
    const first = await takePipes(folder, 'first');
    rmSync(first[name]);
    leavePipes(first);
    expect(nodesOf(await takePipes(folder, 'second'))).toHaveLength(4);
  });
});

test('not more than a few are kept', async () => {
  const sets = [];
  for (let n = 0; n < 20; n += 1) sets.push(await takePipes(folder, `${n}`));
  for (const set of sets) leavePipes(set);
  expect(readdirSync(join(folder, 'spare'))).toHaveLength(16);
  expect(readdirSync(folder)).toEqual(['spare']);
});

test('what guards that were killed have left is swept after its time, and what lives is not', async () => {
  const dead = await takePipes(folder, 'dead');
  const living = await takePipes(folder, 'living');
  spawnSync('mkfifo', [join(folder, 'a'), join(folder, 'b')]);
  held(join(folder, 'b'), O_RDONLY);
  leavePipes(living);
  sweepPipes(folder, 60_000);
  expect(readdirSync(folder)).toContain('dead.pipes');
  sweepPipes(folder, -1);
  expect(readdirSync(folder)).toEqual(['b', 'spare']);
  expect(() => statSync(dead.folder)).toThrow();
});
