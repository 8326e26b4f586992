import { expect, test } from 'vitest';
import { draw, seedOf } from './pick.ts';
import { contractName, parseRun, runText } from './run-id.ts';

const topics = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

test('365 slots use each of 7 topics about as often', () => {
  const recent: string[] = [];
  for (let day = 0; day < 365; day += 1)
    recent.unshift(draw(topics, recent.slice(0, 3), seedOf('blog', `slot ${day}`, '[]', 'topic')));
  for (const topic of topics) {
    const times = recent.filter((each) => each === topic).length;
    expect(times).toBeGreaterThanOrEqual(40);
    expect(times).toBeLessThanOrEqual(65);
  }
  for (let n = 0; n + 3 < recent.length; n += 1) expect(recent.slice(n + 1, n + 4)).not.toContain(recent[n]);
});

test('if everything was used recently, the least recently used is chosen', () => {
  expect(draw(['a', 'b', 'c'], ['b', 'a', 'c', 'b'], 12345)).toBe('c');
  expect(draw(['a'], ['a', 'a'], 1)).toBe('a');
});

test('the same words draw the same, and another slot draws another seed', () => {
  expect(seedOf('blog', '1')).toBe(seedOf('blog', '1'));
  expect(seedOf('blog', '1')).not.toBe(seedOf('blog', '2'));
  expect(seedOf('blog1', '')).not.toBe(seedOf('blog', '1'));
});

test('a run reads back as it was written, whatever its names hold', () => {
  for (const job of ['blog', 'a b@c?d!', '../../etc', '🎉 "quotes"\nnewline'])
    for (const ids of [{}, { customer: '42' }, { 'a.b': '=&?@!', c: '' }]) {
      const run = { job, slot: '2026-06-19T09:00+02:00', ids };
      expect(parseRun(runText(run))).toEqual(run);
      expect(parseRun(runText({ ...run, again: 'why?' }))).toEqual(run);
      expect(runText({ ...run, again: 'why?' })).not.toBe(runText(run));
    }
});

test('every name has a contract of its own', () => {
  const names = [
    'blog',
    'Blog',
    'blog ',
    ' blog',
    'bl/og',
    '../blog',
    '🎉',
    '🎊',
    '',
    '\n',
    'x'.repeat(80),
    'x'.repeat(81),
  ];
  const contracts = names.map((name) => contractName('run', name));
  expect(new Set(contracts).size).toBe(names.length);
  for (const contract of contracts) expect(contract).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
});
