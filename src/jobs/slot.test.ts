import { expect, test } from 'vitest';
import { slotOf } from './slot.ts';

const at = (text: string) => Date.parse(text);
const none = { per: undefined, cron: undefined, at: undefined, zone: 'UTC' } as const;

test('a day is the one that the start falls into, and a timer may be five seconds early', () => {
  expect(slotOf(none, at('2026-06-19T12:00:00Z')).name).toBe('2026-06-19');
  expect(slotOf(none, at('2026-06-18T23:59:56Z')).name).toBe('2026-06-19');
  expect(slotOf(none, at('2026-06-18T23:59:54Z')).name).toBe('2026-06-18');
});

test('with a schedule a late start still stands for its slot', () => {
  const cron = { ...none, cron: '59 23 * * *', zone: 'Europe/Paris' };
  const late = slotOf(cron, at('2026-06-19T22:00:05Z'));
  expect(late).toMatchObject({ name: '2026-06-19T23:59+02:00', date: '2026-06-19', isNearBoundary: false });
  // Without one it takes the next day's slot, and says that it cannot know.
  const bare = slotOf({ ...none, zone: 'Europe/Paris' }, at('2026-06-19T22:00:05Z'));
  expect(bare).toMatchObject({ name: '2026-06-20', isNearBoundary: true });
});

test('a timer that fires a little early means the slot that begins', () => {
  const cron = { ...none, cron: '0 0 * * *' };
  expect(slotOf(cron, at('2026-06-18T23:59:59.920Z')).name).toBe('2026-06-19T00:00Z');
});

test('the scheduled instant that a scheduler tells is the slot', () => {
  const told = { ...none, at: at('2026-06-19T07:00:00Z') };
  expect(slotOf(told, at('2026-06-20T09:00:00Z')).name).toBe('2026-06-19');
  expect(slotOf({ ...told, per: 'hour' }, at('2026-06-20T09:00:00Z'))).toMatchObject({
    name: '2026-06-19T07Z',
    isNearBoundary: false,
  });
});

test('hours carry the offset, so that the hour which comes twice is two slots; its day is one', () => {
  const hour = { ...none, per: 'hour', zone: 'Europe/Berlin' } as const;
  expect(slotOf(hour, at('2026-10-25T00:30:00Z')).name).toBe('2026-10-25T02+02:00');
  expect(slotOf(hour, at('2026-10-25T01:30:00Z')).name).toBe('2026-10-25T02+01:00');
  const day = { ...none, per: 'day', zone: 'Europe/Berlin' } as const;
  for (const when of ['2026-10-24T22:00:00Z', '2026-10-25T12:00:00Z', '2026-10-25T22:59:00Z'])
    expect(slotOf(day, at(when)).name).toBe('2026-10-25');
  for (const when of ['2026-03-28T23:00:00Z', '2026-03-29T21:59:00Z'])
    expect(slotOf(day, at(when)).name).toBe('2026-03-29');
});

test('ever is one slot, and none is another each time', () => {
  expect(slotOf({ ...none, per: 'ever' }, at('2026-06-19T12:00:00Z')).name).toBe('ever');
  const name = (when: string) => slotOf({ ...none, per: 'none' }, at(when)).name;
  expect(name('2026-06-19T12:00:00.001Z')).not.toBe(name('2026-06-19T12:00:00.002Z'));
});
