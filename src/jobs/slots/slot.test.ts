import { expect, test } from 'vitest';
import { isOver, type Schedule, slotOf } from './slot.ts';

const at = (text: string) => Date.parse(text);
const none = { per: undefined, cron: undefined, at: undefined, zone: 'UTC' } as const;

const slotAt = (schedule: Partial<Schedule>, when: string) =>
  slotOf({ ...none, ...schedule }, at(when), 'mark');

test('a period is the one that holds the start, up to its last millisecond', () => {
  expect(slotAt({ per: 'day' }, '2026-06-19T12:00:00Z').name).toBe('2026-06-19');
  for (const when of ['2026-06-18T23:59:54Z', '2026-06-18T23:59:56Z', '2026-06-18T23:59:59.999Z'])
    expect(slotAt({ per: 'day' }, when)).toMatchObject({ name: '2026-06-18', at: at(when) });
  expect(slotAt({ per: 'minute' }, '2026-06-18T12:00:59.999Z').name).toBe('2026-06-18T12:00Z');
  expect(slotAt({ per: 'hour' }, '2026-06-18T12:59:58Z').name).toBe('2026-06-18T12Z');
  expect(slotAt({ per: 'week' }, '2026-06-21T23:59:58Z').name).toBe('2026-W25');
  expect(slotAt({ per: 'month' }, '2026-06-30T23:59:58Z').name).toBe('2026-06');
  // In every zone, also where the clocks change at midnight or the day has 23 or 25 hours.
  for (const [zone, when, name] of [
    ['Europe/Paris', '2026-06-19T21:59:58Z', '2026-06-19'],
    ['Asia/Beirut', '2026-03-28T21:59:58Z', '2026-03-28'],
    ['America/Havana', '2026-11-01T03:59:58Z', '2026-10-31'],
    ['Pacific/Kiritimati', '2026-12-31T09:59:58Z', '2026-12-31'],
  ] as const)
    expect(slotAt({ per: 'day', zone }, when).name).toBe(name);
});

test('with a schedule, a late start still counts for its slot', () => {
  const late = slotAt({ cron: '59 23 * * *', zone: 'Europe/Paris' }, '2026-06-19T22:00:05Z');
  expect(late).toMatchObject({ name: '2026-06-19T23:59+02:00', date: '2026-06-19', near: undefined });
  // Without one it takes the next day's slot, and says that it cannot know.
  const bare = slotAt({ per: 'day', zone: 'Europe/Paris' }, '2026-06-19T22:00:05Z');
  expect(bare).toMatchObject({ name: '2026-06-20', near: 'begin' });
  // Shortly before the end it may be early for the next one, and cannot know that either.
  expect(slotAt({ per: 'day' }, '2026-06-19T23:59:56Z').near).toBe('end');
  expect(slotAt({ per: 'day' }, '2026-06-19T23:59:54Z').near).toBe(undefined);
});

test('a timer that fires a little early means the next instant of its schedule', () => {
  expect(slotAt({ cron: '0 0 * * *' }, '2026-06-18T23:59:59.920Z').name).toBe('2026-06-19T00:00Z');
  expect(slotAt({ cron: '0 0 * * *' }, '2026-06-18T23:59:55Z').name).toBe('2026-06-19T00:00Z');
  expect(slotAt({ cron: '0 0 * * *' }, '2026-06-18T23:59:54Z').name).toBe('2026-06-18T00:00Z');
  // Across the hour that the clocks skip, and the one that they repeat.
  const berlin = { cron: '30 2 * * *', zone: 'Europe/Berlin' };
  expect(slotAt(berlin, '2026-03-29T00:59:58Z').name).toBe('2026-03-29T03:00+02:00');
  expect(slotAt(berlin, '2026-10-25T00:29:58Z').name).toBe('2026-10-25T02:30+02:00');
  expect(slotAt(berlin, '2026-10-25T01:29:58Z').name).toBe('2026-10-25T02:30+02:00');
});

test('the slot of a schedule lasts until its next instant at least, so that it is not forgotten before', () => {
  for (const [expression, next] of [
    ['0 0 19 * *', '2026-07-19T00:00:00Z'],
    ['0 0 19 6 *', '2027-06-19T00:00:00Z'],
    ['0 0 * * 5', '2026-06-26T00:00:00Z'],
    ['0 * * * *', '2026-06-19T01:00:00Z'],
  ] as const) {
    const { span } = slotAt({ cron: expression }, '2026-06-19T00:00:10Z');
    expect(span?.startsAt).toBe(at('2026-06-19T00:00:00Z'));
    expect(span?.endsAt, expression).toBeGreaterThanOrEqual(at(next));
  }
  // A date that comes every eight years.
  const leap = slotAt({ cron: '0 0 29 2 *' }, '2096-03-01T00:00:00Z');
  expect(leap.span?.endsAt).toBeGreaterThanOrEqual(at('2104-02-29T00:00:00Z'));
});

test('with short intervals, a late start does not count as an early one', () => {
  expect(slotAt({ cron: '* * * * *' }, '2026-06-19T12:00:56Z').name).toBe('2026-06-19T12:00Z');
  expect(slotAt({ cron: '* * * * *' }, '2026-06-19T12:00:59.500Z').name).toBe('2026-06-19T12:01Z');
  expect(slotAt({ cron: '*/2 * * * *' }, '2026-06-19T12:01:56Z').name).toBe('2026-06-19T12:00Z');
});

test('an instant alone is its own slot, that of a schedule where it is a whole minute', () => {
  const exact = slotAt({ at: at('2026-06-19T07:00:00Z'), zone: 'Europe/Paris' }, '2026-06-19T07:00:09Z');
  const due = slotAt({ cron: '0 9 * * *', zone: 'Europe/Paris' }, '2026-06-19T07:00:09Z');
  // One key: only its end differs, which the instant alone does not know.
  expect({ ...exact, span: exact.span?.startsAt }).toEqual({ ...due, span: due.span?.startsAt });
  const odd = slotAt({ at: at('2026-06-19T07:00:30.250Z'), zone: 'Europe/Paris' }, '2026-06-19T07:00:31Z');
  expect(odd).toMatchObject({ name: '2026-06-19T09:00:30.250+02:00', start: '2026-06-19T07:00:30.250Z' });
});

test('the instant given by the scheduler is the slot', () => {
  const told = { ...none, at: at('2026-06-19T07:00:00Z') };
  expect(slotAt({ ...told, per: 'day' }, '2026-06-20T09:00:00Z').name).toBe('2026-06-19');
  expect(slotAt({ ...told, per: 'hour' }, '2026-06-20T09:00:00Z')).toMatchObject({
    name: '2026-06-19T07Z',
    near: undefined,
  });
});

test('hours carry the offset, so that the hour which comes twice is two slots; its day is one', () => {
  const hour = { ...none, per: 'hour', zone: 'Europe/Berlin' } as const;
  expect(slotAt(hour, '2026-10-25T00:30:00Z').name).toBe('2026-10-25T02+02:00');
  expect(slotAt(hour, '2026-10-25T01:30:00Z').name).toBe('2026-10-25T02+01:00');
  const day = { ...none, per: 'day', zone: 'Europe/Berlin' } as const;
  for (const when of ['2026-10-24T22:00:00Z', '2026-10-25T12:00:00Z', '2026-10-25T22:59:00Z'])
    expect(slotAt(day, when).name).toBe('2026-10-25');
  for (const when of ['2026-03-28T23:00:00Z', '2026-03-29T21:59:00Z'])
    expect(slotAt(day, when).name).toBe('2026-03-29');
});

test('ever is one slot; without a period each start is another, also within one millisecond', () => {
  expect(slotAt({ per: 'ever' }, '2026-06-19T12:00:00Z').name).toBe('ever');
  const startOf = (per: 'none' | undefined, mark: string) =>
    slotOf({ ...none, per }, at('2026-06-19T12:00:00.001Z'), mark);
  expect(startOf(undefined, 'a')).toEqual(startOf('none', 'a'));
  expect(startOf(undefined, 'a').start).not.toBe(startOf(undefined, 'b').start);
});

test('@reboot is a slot per boot and machine, and no clock is part of it', () => {
  const boot = { id: '48cf568e-ccf0-44b2-ad9f-714ef4f5a334', host: 'web1', at: at('2026-06-19T22:30:00Z') };
  const slotOn = (changes: Partial<typeof boot>, when = '2026-06-20T07:00:00Z') =>
    slotOf({ ...none, cron: '@reboot', zone: 'Europe/Paris' }, at(when), 'mark', () => ({
      ...boot,
      ...changes,
    }));
  const first = slotOn({});
  expect(first).toMatchObject({
    unit: 'boot',
    name: 'web1-boot-48cf568e',
    date: '2026-06-20',
    span: undefined,
  });
  // Calendar periods inside are those of each call: what starts at boot may run for weeks.
  expect(first.periodsAt).toBe(undefined);
  const identityOf = ({ name, start, unit }: typeof first) => ({ name, start, unit });
  const corrected = slotOn({ at: at('2031-01-01T00:00:00Z') }, '2031-02-01T00:00:00Z');
  expect(identityOf(corrected)).toEqual(identityOf(first));
  // Equal in what a name shows, and still another boot.
  const similar = slotOn({ id: '48cf568e-0000-44b2-ad9f-714ef4f5a334' });
  expect(similar.start).not.toBe(first.start);
  for (const other of [slotOn({ id: '11111111-0000' }), slotOn({ host: 'web2' })]) {
    expect(other.name).not.toBe(first.name);
    expect(other.start).not.toBe(first.start);
  }
  expect(slotOn({ host: 'ann’s mac?x=1' }).name).toBe('ann-s-mac-x-1-boot-48cf568e');
  expect(() => slotOn({ id: '' })).toThrow('@reboot needs a boot id');
});

test('a run is over for good if it had no slot or was of an earlier boot of this machine', () => {
  const boot = (id: string, host = 'web1') =>
    slotOf({ ...none, cron: '@reboot' }, 0, 'mark', () => ({ id, host, at: 0 }));
  const asRun = ({ unit, name }: ReturnType<typeof boot>) => ({ per: unit, slot: name });
  const now = boot('22222222');
  expect(isOver(asRun(boot('11111111')), now)).toBe(true);
  expect(isOver(asRun(now), now)).toBe(false);
  expect(isOver(asRun(boot('11111111', 'web2')), now)).toBe(false);
  expect(isOver({ per: 'none', slot: 'x' }, now)).toBe(false);
  const [bare, daily] = [slotAt({}, '2026-06-19T12:00:00Z'), slotAt({ per: 'day' }, '2026-06-19T12:00:00Z')];
  expect(isOver({ per: 'none' }, bare)).toBe(true);
  expect(isOver({ per: 'day', slot: '2026-06-18' }, daily)).toBe(false);
});
