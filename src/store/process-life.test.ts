import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, expect, test, vi } from 'vitest';
import { isProcessGone, lifeOf, markOf, sendsAlone, withoutMark } from './process-life.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

const here = () => true;
const linux = test.skipIf(process.platform !== 'linux');

/** The owner of a claim of a process with this id, made in this place. */
function ownerOf(pid: number): string {
  return lifeOf(undefined, here).provableOwner.replace(`:${process.pid}~`, `:${pid}~`);
}

async function endedProcess(): Promise<number> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid as number;
}

linux('a process that has ended is gone, and no living one is', async () => {
  expect(isProcessGone(ownerOf(await endedProcess()))).toBe(true);
  expect(isProcessGone(ownerOf(process.pid))).toBe(false);
  expect(isProcessGone(ownerOf(process.ppid))).toBe(false);
  expect(isProcessGone(`${ownerOf(await endedProcess())}.alone`)).toBe(true);
});

linux('an owner without the mark of this place is not known to be dead', async () => {
  const pid = await endedProcess();
  const mark = ownerOf(pid).slice(-12);
  for (const owner of [
    `web1:${pid}`,
    'web1',
    '',
    `web1:${pid}~`,
    `web1:${pid}#${'0'.repeat(20)}`,
    `web1:${pid}~${mark}0`,
    `web1:${pid}~${mark.slice(1)}`,
    `web1:${pid}~${markOf('another boot', 'pid:[4026531836]')}`,
    `web1:0~${mark}`,
    `web1:-1~${mark}`,
    `web1:~${mark}`,
    `web1:99999999999999~${mark}`,
  ])
    expect(isProcessGone(owner), owner).toBe(false);
});

linux('a process that this user may not signal is alive', async () => {
  const owner = ownerOf(await endedProcess());
  vi.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
  });
  expect(isProcessGone(owner)).toBe(false);
});

test('every boot and every process id namespace has its own mark', () => {
  const marks = [
    markOf('boot 1', 'pid:[1]'),
    markOf('boot 2', 'pid:[1]'),
    markOf('boot 1', 'pid:[2]'),
    markOf('boot 2', 'pid:[2]'),
  ];
  expect(new Set(marks).size).toBe(4);
});

linux('nobody is called dead on a ledger that other machines can use', async () => {
  const owner = ownerOf(await endedProcess());
  expect(lifeOf(undefined, here).isDead(owner)).toBe(true);
  expect(lifeOf(undefined, () => false).isDead(owner)).toBe(false);
});

linux('a name that the user chose has no mark, even one copied from a record', () => {
  const { owner, provableOwner, loneOwner } = lifeOf('worker-7', here);
  expect([owner, provableOwner, loneOwner]).toEqual(['worker-7', 'worker-7', 'worker-7']);
  const copied = lifeOf(lifeOf(undefined, here).loneOwner, here);
  expect(isProcessGone(copied.provableOwner)).toBe(false);
  expect(copied.provableOwner).toBe(`${copied.owner}`);
  expect(copied.owner).not.toContain('~');
});

linux('a thread has no mark: it can end without its process', async () => {
  const url = new URL('./process-life.ts', import.meta.url).href;
  const code = `
    import { parentPort } from 'node:worker_threads';
    const { lifeOf } = await import(${JSON.stringify(url)});
    parentPort.postMessage(lifeOf(undefined, () => true).provableOwner);`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  const [owner] = await once(worker, 'message');
  expect(owner).toMatch(/:\d+$/);
  await worker.terminate();
});

test('people see no mark', () => {
  const mark = markOf('boot', 'pid:[1]');
  expect(withoutMark(`web1:42~${mark}`)).toBe('web1:42');
  expect(withoutMark(`web1:42~${mark}.alone`)).toBe('web1:42');
  expect(withoutMark('a~b')).toBe('a~b');
  expect(sendsAlone(`web1:42~${mark}`)).toBe(false);
  expect(sendsAlone(`web1:42~${mark}.alone`)).toBe(true);
});
