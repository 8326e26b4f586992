// A run that did too little is void; a log that was torn by a kill is still read.
import { expect, test } from 'vitest';
import { effortOf, parseLines, shortfalls } from '../support/checker/index.ts';
import { story } from './story.ts';

function eventfulRun() {
  const told = story();
  told.executes('c1', 1);
  told.starts('c2');
  told.tells('c2', 'replayed', { fence: 1, value: 'v1' });
  told.starts('c3', { key: 'mail.send/=2' });
  told.claims('c3', 1, { key: 'mail.send/=2' });
  told.dies('w1');
  told.notes('takeover', 2, {}, { key: 'mail.send/=2' });
  told.notes('lateNews', 1, {}, { key: 'mail.send/=2' });
  told.notes('resolved', 3, { act: 'landed' }, { key: 'mail.send/=2' });
  told.starts('c4', { worker: 'w2' });
  told.tells('c4', 'in doubt', { worker: 'w2', fence: 2 });
  return told.logs();
}

test('what a run went through is counted', () => {
  expect(effortOf(eventfulRun())).toEqual({
    calls: 4,
    successes: 1,
    replays: 1,
    takeovers: 1,
    fenced: 1,
    doubts: 1,
    verdicts: 1,
    deaths: 1,
  });
});

test('a run that did enough counts', () => {
  expect(shortfalls(effortOf(eventfulRun()), { successes: 1, takeovers: 1, fenced: 1, doubts: 1 })).toEqual(
    [],
  );
});

test('a run that did too little is void, and says what is missing', () => {
  expect(shortfalls(effortOf(story().logs()), { successes: 100, takeovers: 1 })).toEqual([
    'Only 0 successes, at least 100 are needed: the run is void.',
    'Only 0 takeovers, at least 1 are needed: the run is void.',
  ]);
});

test('a line that a kill has torn is left out, but only at the end', () => {
  expect(parseLines('{"a":1}\n{"a":2}\n{"a":')).toEqual([{ a: 1 }, { a: 2 }]);
  expect(() => parseLines('{"a":1}\n{"a"\n{"a":3}\n')).toThrow('Line 2 is not JSON');
});
