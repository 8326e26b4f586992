import { afterEach, expect, test, vi } from 'vitest';
import { systemZone, zoneOf } from './zone.ts';

afterEach(() => vi.unstubAllEnvs());

test.each([
  ['Europe/Berlin', 'Europe/Berlin'],
  [':Europe/Berlin', 'Europe/Berlin'],
  ['posix/Europe/Berlin', 'Europe/Berlin'],
  [':/usr/share/zoneinfo/Asia/Kolkata', 'Asia/Kolkata'],
  ['/usr/share/zoneinfo/right/Asia/Kolkata', 'Asia/Kolkata'],
  ['UTC0', 'UTC'],
  ['GMT+0', 'GMT'],
])('TZ=%s is the zone %s', (tz, zone) => {
  vi.stubEnv('TZ', tz);
  expect(zoneOf(undefined)).toBe(zone);
});

test.each(['', ':', '/etc/localtime', ':/etc/localtime'])('TZ=%j is the zone of the system', (tz) => {
  vi.stubEnv('TZ', undefined);
  const system = zoneOf(undefined);
  vi.stubEnv('TZ', tz);
  expect(zoneOf(undefined)).toBe(system);
});

test('an empty TZ is UTC where the system names no zone, as in small containers', () => {
  vi.stubEnv('TZ', '');
  expect(systemZone('/nowhere')).toBe('UTC');
});
