import { expect, test } from 'vitest';
import { fold, foldCommand, foldText } from './fold.ts';

test('a line that fits stays as it is', () => {
  expect(fold('  key      a b c', 16)).toEqual(['  key      a b c']);
});

test('a line breaks between words and continues below its text', () => {
  expect(fold('  error     the connection was lost again', 28)).toEqual([
    '  error     the connection',
    '            was lost again',
  ]);
  expect(fold('  one two three four', 12)).toEqual(['  one two', '  three four']);
});

test('output of a command keeps its bar', () => {
  expect(fold('    | one two three', 14)).toEqual(['    | one two', '    | three']);
});

test('a word longer than the line is left to the terminal', () => {
  expect(fold('  args  abcdefghijkl mn', 14)).toEqual(['  args  abcdefghijkl', '        mn']);
});

test('a label that is too wide does not push the text aside', () => {
  expect(fold('a very wide label  with text', 20)).toEqual(['a very wide label', 'with text']);
});

test('colours take no room', () => {
  expect(fold('\u001b[31mone two\u001b[39m three', 13)).toEqual(['\u001b[31mone two\u001b[39m three']);
});

test('a command continues with a backslash, and never inside quotes', () => {
  expect(foldCommand("  semel resolve --error 'hang up' landed --namespace shop", 35)).toEqual([
    "  semel resolve --error 'hang up' \\",
    '  landed --namespace shop',
  ]);
});

test('a help text is joined before it is broken, except for what is indented', () => {
  expect(foldText('one two\nthree four\n\n  --flag  help\n  --other  more\n', 14)).toBe(
    'one two three\nfour\n\n  --flag  help\n  --other\n  more\n',
  );
  expect(foldText('one\ntwo', Number.POSITIVE_INFINITY)).toBe('one\ntwo');
});
