import { describe, expect, test } from 'vitest';
import { cut, displayWidth, pad, terminalWidth, textWidth, wrap, wrapLine, wrapParagraphs } from './wrap.ts';

const widths = [40, 80, 120];
const widest = (lines: readonly string[]) => Math.max(...lines.map(displayWidth));
const prose =
  'A slot that is done or running is skipped. One that failed or crashed runs again, and with it everything that it did before: put what must not repeat under `semel once`.';

test.each([
  ['abc', 3],
  ['日本', 4],
  ['한국어', 6],
  ['😀', 2],
  ['e\u0301', 1],
  ['→…', 2],
  ['\u001b[1mbold\u001b[22m', 4],
])('%s takes %i columns', (text, columns) => {
  expect(displayWidth(text)).toBe(columns);
});

test.each([
  ['abcdef', 6, 'abcdef'],
  ['abcdef', 5, 'abcd…'],
  ['日本語', 6, '日本語'],
  ['日本語', 5, '日本…'],
  ['日本語', 4, '日…'],
  ['ab😀', 3, 'ab…'],
  ['abc', 1, '…'],
  ['abc', 0, ''],
])('%s in %i columns is %s', (text, width, shown) => {
  expect(cut(text, width)).toBe(shown);
});

test('wide characters are padded by columns', () => {
  expect(pad('日本', 6)).toBe('日本  ');
});

describe('the width of a terminal', () => {
  test.each([
    [{}, undefined, 80],
    [{ columns: 120 }, undefined, 80],
    [{ isTTY: true }, undefined, 80],
    [{ isTTY: true, columns: 0 }, undefined, 80],
    [{ isTTY: true, columns: 1 }, 20, 20],
    [{ isTTY: true, columns: 60 }, 60, 60],
    [{ isTTY: true, columns: 200 }, 200, 100],
  ])('%j: tables have %s columns, text %i', (stream, table, text) => {
    expect([terminalWidth(stream), textWidth(stream)]).toEqual([table, text]);
  });
});

test.each(widths)('text of %i columns keeps all words whole', (width) => {
  const lines = wrapLine(prose, width);
  expect(widest(lines)).toBeLessThanOrEqual(width);
  expect(lines.map((line) => line.trim()).join(' ')).toBe(prose);
});

test('a line that fits, and one of a single long word, stay as they are', () => {
  expect(wrapLine('  a  b', 40)).toEqual(['  a  b']);
  expect(wrapLine(`  ${'x'.repeat(50)}`, 40)).toEqual([`  ${'x'.repeat(50)}`]);
});

test('text continues under itself, beside its label', () => {
  expect(wrapLine('    args     {"reason":"it came  late", "more":"text"}', 40)).toEqual([
    '    args     {"reason":"it came  late",',
    '             "more":"text"}',
  ]);
  expect(wrapLine(`    | ${'word '.repeat(8)}`, 40)).toEqual([
    '    | word word word word word word word',
    '    | word',
  ]);
  expect(wrapLine('  Do: look whether it has landed, and then decide', 40)).toEqual([
    '  Do: look whether it has landed, and',
    '    then decide',
  ]);
});

describe('a command to copy is broken only as a shell reads it', () => {
  const command = `semel resolve --tool refund --error 'ECONNRESET: hang up (sic). Bye' landed --namespace shop`;
  test.each([
    `  all of them: ${command}`,
    `    decide   ${command}`,
    `semel: check whether it landed, then: ${command} ("not landed" in 60 s at the earliest)`,
    `  \u001b[1m${command}\u001b[22m`,
    command,
  ])('%s', (line) => {
    for (const width of [20, ...widths])
      expect(
        wrapLine(line, width)
          .join('\n')
          .replaceAll(/\\\n +/g, ''),
      ).toContain(command);
  });

  test('before an option and after --, if it is too long for one line', () => {
    const long =
      'semel resolve 7f3a0c2b9d@1 landed --namespace shop --store sqlite:/srv/shop/state/ledger.db';
    expect(wrapLine(`  decide  ${long}`, 60)).toEqual([
      '  decide  semel resolve 7f3a0c2b9d@1 landed \\',
      '            --namespace shop \\',
      '            --store sqlite:/srv/shop/state/ledger.db',
    ]);
    expect(wrapLine(`semel once charge --id order=7 -- sh -c 'curl -fsS "$URL" -H "Key: $KEY"'`, 60)).toEqual(
      ['semel once charge --id order=7 -- \\', `    sh -c 'curl -fsS "$URL" -H "Key: $KEY"'`],
    );
  });

  test('the name of a command in front of a message is not a command', () => {
    expect(wrapLine('semel doctor: there is no ledger at /home/ann/state/ledger.db.', 40)).toEqual([
      'semel doctor: there is no ledger at',
      '  /home/ann/state/ledger.db.',
    ]);
  });

  test('the text around it is wrapped', () => {
    const line =
      'It is not known whether it landed. Write: semel show abcd, which says more than all of this.';
    for (const width of widths) expect(widest(wrapLine(line, width))).toBeLessThanOrEqual(width);
    expect(wrapLine(line, 40)).toContain('  Write: semel show abcd, which says');
  });

  test('in backticks it stays in one line, anywhere in the text', () => {
    expect(wrap('There is more to read: see `semel explain IN_DOUBT`.', 40)).toEqual([
      'There is more to read: see',
      '`semel explain IN_DOUBT`.',
    ]);
  });

  test('a stray backtick keeps no text from being wrapped', () => {
    expect(widest(wrapLine(`unexpected token \` in ${prose}`, 40))).toBeLessThanOrEqual(40);
  });
});

test('paragraphs are re-wrapped, and lists keep their lines', () => {
  const text = `One line that ends here\nand goes on. Words:\n  landed    it is there\n  died      it is gone\nThe end\nis near.`;
  expect(wrapParagraphs(text, 60)).toEqual([
    'One line that ends here and goes on. Words:',
    '  landed    it is there',
    '  died      it is gone',
    'The end is near.',
  ]);
});
