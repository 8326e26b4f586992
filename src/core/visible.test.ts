import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { escapeInvisible, shellWord } from './visible.ts';

/** Every character below 0x30000 that is invisible, ends a line or turns the direction, by the tables of Unicode. */
const hidden = Array.from({ length: 0xe1000 }, (_, code) => code)
  .filter((code) => code < 0x3000 || code >= 0xd800)
  .map((code) => String.fromCodePoint(code))
  .filter((character) =>
    /\p{Cc}|\p{Bidi_Control}|\p{Default_Ignorable_Code_Point}|\p{Zl}|\p{Zp}/u.test(character),
  );

test('control, invisible and bidirectional characters are escaped', () => {
  expect(hidden).toEqual(
    expect.arrayContaining(['\u061c', '\u200b', '\u202e', '\u2066', '\ufeff', '\u0085', '\u{e0041}']),
  );
  for (const character of hidden)
    expect(escapeInvisible(`a${character}b`), character.codePointAt(0)?.toString(16)).toMatch(
      /^a(\\u[0-9a-f]{4}){1,2}b$/,
    );
  expect(escapeInvisible('half \ud83d')).toBe('half \\ud83d');
});

test('what people can read stays as it is', () => {
  const text = 'Zoë bought 3 × ☕ for 7,50 € – שלום, 你好, 🙂';
  expect(escapeInvisible(text)).toBe(text);
});

test('JSON that was made visible is the same JSON', () => {
  const value = { text: hidden.join(''), [hidden[9] as string]: 1 };
  expect(JSON.parse(escapeInvisible(JSON.stringify(value)))).toEqual(value);
});

test('a shell reads back exactly the value that was quoted, and runs nothing', () => {
  const values = [
    'plain-word_1.2/3:4@5',
    "it's $(touch pwned) `touch pwned`; touch pwned #",
    '--flag',
    'a b\tc\nd',
    '\u001b]0;owned\u0007',
    'a\u202edednal\u061c',
    '~/x=*?[a]{b,c}!!\\n\\x41',
    "\\'\u200b\\",
    '\u{e0041}é',
    '',
  ];
  for (const value of values) {
    const word = shellWord(value);
    expect(escapeInvisible(word)).toBe(word);
    const { stdout } = spawnSync('bash', ['-c', `printf %s ${word}`], { encoding: 'utf8' });
    expect(stdout, word).toBe(value);
  }
});
