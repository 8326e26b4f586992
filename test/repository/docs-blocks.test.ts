// What `npm run docs:check` takes from a page. That the blocks then run is seen on the pages themselves.
import { expect, test } from 'vitest';
import {
  join,
  joinPrograms,
  pageLine,
  promisedOutput,
  readBlocks,
  runnable,
} from '../../scripts/docs/blocks.ts';

function page(...lines: string[]): string {
  return lines.join('\n');
}

function complaint(info: string): string | undefined {
  return readBlocks('a.md', page(`\`\`\`${info}`, 'code', '```')).complaints[0]?.message;
}

test('ts and sh blocks are taken, with the line they start at; other languages are not', () => {
  const text = page('# Title', '```ts', 'a;', '```', '```json', '{}', '```', '~~~sh', 'ls', '~~~');
  expect(readBlocks('a.md', text)).toEqual({
    blocks: [
      { page: 'a.md', line: 2, language: 'ts', code: ['a;'], continues: false },
      { page: 'a.md', line: 8, language: 'sh', code: ['ls'], continues: false },
    ],
    complaints: [],
  });
});

test('a block in a list loses the indentation of the list only', () => {
  const { blocks } = readBlocks(
    'a.md',
    page('1. First', '', '   ```ts', '   if (a) {', '     b();', '   }', '   ```'),
  );
  expect(blocks[0]!.code).toEqual(['if (a) {', '  b();', '}']);
});

test('a fence inside a longer fence is text', () => {
  const { blocks } = readBlocks('a.md', page('````md', '```ts', 'a;', '```', '````', '```ts', 'b;', '```'));
  expect(blocks.map((block) => block.code)).toEqual([['b;']]);
});

test('an exception carries its reason', () => {
  const { blocks } = readBlocks(
    'a.md',
    page('```ts no-run="needs an account"', '```', '```ts no-check="old"', '```'),
  );
  expect(blocks).toMatchObject([{ noRun: 'needs an account' }, { noCheck: 'old' }]);
});

test('what would let a block slip by is refused', () => {
  expect(complaint('typescript')).toContain('write `ts`');
  expect(complaint('bash')).toContain('write `sh`');
  expect(complaint('ts no-run')).toContain('needs a reason');
  expect(complaint('ts no-run=""')).toContain('needs a reason');
  expect(complaint('sh no-check="why"')).toContain('no-run');
  expect(complaint('ts skip')).toContain('`skip` is not known');
  expect(complaint('ts "loose"')).toContain('is not known');
});

test('a block that continues is one program with those before it, and its lines lead back to the page', () => {
  const text = page('```ts', 'a;', 'b;', '```', '```sh', 'ls', '```', '```ts continues', 'c;', '```');
  const { programs } = joinPrograms(readBlocks('a.md', text).blocks);
  expect(programs.map(join)).toEqual(['a;\nb;\nc;\n', 'ls\n']);
  expect([1, 2, 3].map((line) => pageLine(programs[0]!, line))).toEqual([2, 3, 9]);
});

test('a block cannot continue if it is the first on its page', () => {
  const first = readBlocks('a.md', page('```ts', 'a;', '```')).blocks;
  const second = readBlocks('b.md', page('```ts continues', 'b;', '```')).blocks;
  expect(joinPrograms([...first, ...second]).complaints).toMatchObject([{ page: 'b.md', line: 1 }]);
});

test('a program runs up to its first block that is not run', () => {
  const text = page(
    '```ts',
    'a;',
    '```',
    '```ts continues no-run="why"',
    'b;',
    '```',
    '```ts continues',
    'c;',
    '```',
  );
  const { programs } = joinPrograms(readBlocks('a.md', text).blocks);
  expect(join(runnable(programs[0]!))).toBe('a;\n');
});

test('promised output is read in order', () => {
  const { blocks } = readBlocks(
    'a.md',
    page('```ts', 'log(1);', '// prints: 1', 'log(2); ', '  // prints: 2 ', '```'),
  );
  expect(promisedOutput(blocks)).toEqual(['1', '2']);
});
