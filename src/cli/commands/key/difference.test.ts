import { expect, test } from 'vitest';
import { differencesOf, freshHint, hintOf } from './difference.ts';

test('differences are listed field by field, as deep as both sides have fields', () => {
  const first = { lead: { id: 1, tags: ['a'] }, same: { b: 1, a: 2 }, gone: null };
  const second = { lead: { id: 2, tags: ['a', 'b'] }, same: { a: 2, b: 1 }, added: 0 };
  expect(differencesOf(first, second)).toEqual([
    { path: 'added', first: undefined, second: 0 },
    { path: 'gone', first: null, second: undefined },
    { path: 'lead.id', first: 1, second: 2 },
    { path: 'lead.tags', first: ['a'], second: ['a', 'b'] },
  ]);
  expect(differencesOf(first, first)).toEqual([]);
  expect(differencesOf(1, '1')).toEqual([{ path: '', first: 1, second: '1' }]);
});

test.each([
  ['42', 42, 'a text and a number'],
  [' ann ', 'ann', '--normalize field=trim'],
  ['Ann', 'ann', '--normalize field=lower'],
  ['Ann@x.org', ' ann@X.org', '--normalize field=email'],
  ['20.0', '20', '--normalize field=money'],
  ['+44 20 7946 0958', '+442079460958', '--normalize field=e164'],
  ['e\u0301', '\u00e9', '--normalize field=nfc'],
  ['2026-06-19T09:00:00Z', '2026-06-19T09:00:01Z', 'a timestamp'],
  ['0b7c2f4e-1111-4222-8333-444455556666', '1b7c2f4e-1111-4222-8333-444455556666', 'a random id'],
  ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'x', 'a trace id'],
  [Date.now(), Date.now() + 1, 'a timestamp'],
  [undefined, 1, 'only one of the calls has field'],
])('%j and %j: %s', (first, second, hint) => {
  expect(hintOf({ path: 'field', first, second })).toContain(hint);
});

test('two values that merely differ get no hint, unless the field’s name suggests free text', () => {
  expect(hintOf({ path: 'lead', first: 42, second: 43 })).toBeUndefined();
  expect(hintOf({ path: 'mail.body', first: 'Hi', second: 'Hello' })).toContain('--content or --volatile');
  expect(freshHint('lead', 42)).toBeUndefined();
});
