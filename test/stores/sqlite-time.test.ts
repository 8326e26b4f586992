// Rule 7 on a store that has no clock: leases by boot and monotonic clock, windows by the wall clock while it agrees
// with the uptime.
import { spawnSync } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { bootId, shortenBootId } from '../../src/store/boot.ts';
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite/index.ts';
import {
  day,
  hour,
  lease,
  lose,
  minute,
  take,
  theKey,
  theNamespace,
  window,
} from '../../src/testing/store-contract/attempt.ts';
import { newPath } from './sqlite-folder.ts';

/** A machine with clocks that can be moved apart. */
function machineOf() {
  const state = { wall: Date.UTC(2026, 5, 19, 9), mono: 5 * hour, uptime: 6 * hour, boot: 'first' };
  const clock = { ...systemClock, now: () => state.wall, mono: () => state.mono };
  const machine = { bootId: () => state.boot, uptimeMs: () => state.uptime };
  return {
    state,
    at(path: string): SqliteStore {
      const store = sqliteStore({ path, clock, machine });
      onTestFinished(() => store.close());
      return store;
    },
    pass(ms: number) {
      state.wall += ms;
      state.mono += ms;
      state.uptime += ms;
    },
    sleep(ms: number) {
      state.wall += ms;
      state.uptime += ms;
    },
    restart(ms = minute) {
      state.wall += ms;
      state.mono = 10_000;
      state.uptime = 10_000;
      state.boot = `${state.boot}+`;
    },
  };
}

const problemOf = async (store: SqliteStore) => (await store.open()).clockProblem;

test('a step of the wall clock ends no lease', async () => {
  const world = machineOf();
  const store = world.at(newPath());
  await take(store);
  world.state.wall += 10 * 365 * day;
  expect(await lose(store)).toMatchObject({ status: 'running', lapsed: false, leaseLeftMs: lease });
});

test('a lease is one clock for all processes of a boot', async () => {
  const world = machineOf();
  const path = newPath();
  const [here, there] = [world.at(path), world.at(path)];
  await take(here);
  world.pass(lease - 1);
  await lose(there);
  world.pass(1);
  await take(there);
});

test('a claim of another boot has lapsed at once', async () => {
  const world = machineOf();
  const path = newPath();
  await take(world.at(path), { leaseMs: 10 * day });
  world.restart();
  expect(await take(world.at(path))).toMatchObject({ takeover: true });
});

describe('where the platform has no name for a boot', () => {
  /** A process of the same machine that is off by so much when it computes the instant of the boot. */
  function processOf(world: ReturnType<typeof machineOf>, path: string, offMs = 0): SqliteStore {
    const { state } = world;
    const clock = { ...systemClock, now: () => state.wall, mono: () => state.mono };
    const machine = { bootId: () => undefined, uptimeMs: () => state.uptime + offMs };
    const store = sqliteStore({ path, clock, machine });
    onTestFinished(() => store.close());
    return store;
  }

  test.each([-2 * minute, -1, 1, 999, 2 * minute])(
    'a process that computes its instant %i ms off sees the same lease',
    async (offMs) => {
      const world = machineOf();
      const path = newPath();
      const here = processOf(world, path);
      const there = processOf(world, path, offMs);
      await Promise.all([here.open(), there.open()]);
      await take(here);
      expect(await lose(there)).toMatchObject({ lapsed: false, leaseLeftMs: lease });
      await take(there, { key: 'mail.send/=there' });
      expect(await lose(here, { key: 'mail.send/=there' })).toMatchObject({ lapsed: false });
      expect(await lose(processOf(world, path, offMs))).toMatchObject({ lapsed: false });
    },
  );

  test('after another start all leases are over', async () => {
    const world = machineOf();
    const path = newPath();
    await take(processOf(world, path), { leaseMs: 10 * day });
    world.restart();
    expect(await take(processOf(world, path))).toMatchObject({ takeover: true });
  });

  test('a step of the wall clock ends no lease of a process that was there before', async () => {
    const world = machineOf();
    const path = newPath();
    const [here, there] = [processOf(world, path), processOf(world, path, 1)];
    await there.open();
    await take(here);
    world.state.wall += day;
    for (const store of [here, there]) expect(await lose(store)).toMatchObject({ lapsed: false });
  });
});

test('a step forward ends no window, is reported, and is over when the clock is right again', async () => {
  const world = machineOf();
  const store = world.at(newPath());
  await (await take(store)).succeed();
  world.state.wall += 2 * window;
  await lose(store);
  expect(await store.prune(10)).toBe(0);
  expect(await problemOf(store)).toMatch(/^The clock is 2 days ahead .* Nothing expires/);
  world.state.wall -= 2 * window;
  world.pass(window);
  expect(await problemOf(store)).toBeUndefined();
  await take(store);
});

test('a process with a wrong clock does not spoil it for the others', async () => {
  const world = machineOf();
  const path = newPath();
  const right = world.at(path);
  await (await take(right)).succeed();
  const wrong = sqliteStore({
    path,
    clock: { ...systemClock, now: () => world.state.wall + 400 * day, mono: () => world.state.mono },
    machine: { bootId: () => world.state.boot, uptimeMs: () => world.state.uptime },
  });
  expect(await problemOf(wrong)).toMatch(/400 days ahead/);
  await lose(wrong);
  await (await take(wrong, { key: 'mail.send/=another' })).succeed();
  await wrong.close();
  expect(await problemOf(right)).toBeUndefined();
  world.pass(window);
  await take(right);
});

test('a person can say that the clock is right', async () => {
  const world = machineOf();
  const path = newPath();
  const store = world.at(path);
  await (await take(store)).succeed();
  world.state.wall += 2 * window;
  expect(await problemOf(store)).toContain('acceptClock()');
  await store.acceptClock();
  expect(await problemOf(store)).toBeUndefined();
  expect(await problemOf(world.at(path))).toBeUndefined();
  await take(store);
});

test('a machine that slept is not a clock step', async () => {
  const world = machineOf();
  const store = world.at(newPath());
  await (await take(store)).succeed();
  const holder = await take(store, { key: 'mail.send/=held' });
  world.sleep(window);
  expect(await problemOf(store)).toBeUndefined();
  await take(store);
  // The holder slept too.
  expect(await holder.renew()).toMatchObject({ held: true });
});

test('after a boot, a clock that starts in the past ends no window until it is right', async () => {
  const world = machineOf();
  const path = newPath();
  await (await take(world.at(path))).succeed();
  world.restart(-20 * 365 * day);
  const store = world.at(path);
  expect(await problemOf(store)).toMatch(/^Since the machine was restarted, its clock is .* behind/);
  await (await take(store, { key: 'mail.send/=meanwhile' })).succeed();
  await lose(store);
  world.state.wall += 20 * 365 * day + 2 * window;
  expect(await problemOf(store)).toBeUndefined();
  await take(store);
});

test('the latest time is stored in transactions that happen anyway', async () => {
  const world = machineOf();
  const path = newPath();
  const store = world.at(path);
  await take(store);
  const seen = () => {
    const database = new DatabaseSync(path);
    const row = database.prepare('SELECT anchor_seen FROM meta').get() as { anchor_seen: number };
    database.close();
    return row.anchor_seen;
  };
  const first = seen();
  world.pass(2 * hour);
  await store.read(theNamespace, theKey);
  expect(seen()).toBe(first);
  await take(store, { key: 'mail.send/=later' });
  expect(seen()).toBe(first + 2 * hour);
});

test('time is read after the lock was had', async () => {
  const world = machineOf();
  const path = newPath();
  const store = world.at(path);
  await store.open();
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  const taken = take(store);
  await new Promise((resolve) => setTimeout(resolve, 10));
  world.pass(5 * minute);
  other.exec('COMMIT');
  other.close();
  expect((await taken).record).toMatchObject({ createdAt: world.state.wall, leaseLeftMs: lease });
});

test('the uptime is not read on every call', async () => {
  let asked = 0;
  const store = sqliteStore({
    path: newPath(),
    machine: {
      uptimeMs() {
        asked += 1;
        return systemClock.mono();
      },
    },
  });
  await (await take(store)).succeed();
  const before = asked;
  for (let i = 0; i < 100; i += 1) await lose(store);
  expect(asked - before).toBeLessThan(3);
  await store.close();
});

test('all processes of this boot call it the same, and a lease holds a short form', () => {
  const script = `import { bootId } from ${JSON.stringify(new URL('../../src/store/boot.ts', import.meta.url).href)}; console.log(bootId());`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  expect(stdout.trim()).toBe(String(bootId()));
  expect(shortenBootId('a')).toMatch(/^[0-9a-f]{12}$/);
  expect(shortenBootId('a')).not.toBe(shortenBootId('b'));
});

test('a lease is kept with its record and is gone once it is settled', async () => {
  const path = newPath();
  const store = sqliteStore({ path, machine: { bootId: () => 'this boot' } });
  const attempt = await take(store, { token: '0123456789abcdef' });
  const database = new DatabaseSync(path);
  const lease = database.prepare("SELECT more ->> '$.lease[0]' AS boot FROM records").get();
  expect(lease).toEqual({ boot: shortenBootId('this boot') });
  await attempt.succeed();
  expect(database.prepare('SELECT more FROM records').get()).toEqual({ more: null });
  database.close();
  await store.close();
});
