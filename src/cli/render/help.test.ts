import { expect, test } from 'vitest';
import { commands } from '../commands/index.ts';
import { overview } from './overview.ts';
import { displayWidth } from './wrap.ts';

const loaded = await Promise.all(Object.values(commands).map(async (load) => (await load()).default));

test.each([80, 100])('help fits into %i columns', (width) => {
  for (const command of loaded) {
    expect(
      command
        .help(width)
        .split('\n')
        .filter((line) => displayWidth(line) > width),
    ).toEqual([]);
  }
  expect(
    overview(width)
      .split('\n')
      .filter((line) => displayWidth(line) > width),
  ).toEqual([]);
});

test('a list keeps one line per item: only indented lines are not filled', () => {
  for (const command of loaded)
    expect(
      command
        .help(80)
        .split('\n')
        .filter((line) => /^\S.* {2}/.test(line)),
    ).toEqual([]);
});

test('the same words are there at every width', () => {
  const words = (text: string) => text.split(/\s+/).filter((word) => word !== '\\');
  for (const { help } of loaded)
    for (const width of [20, 40, 120]) expect(words(help(width))).toEqual(words(help(80)));
  for (const width of [20, 40, 120]) expect(words(overview(width))).toEqual(words(overview(80)));
});

test('an option is explained beside its name, and under it if the name is long', () => {
  const help = loaded.find(({ name }) => name === 'run')?.help(80) ?? '';
  expect(help).toContain(
    '  --at <instant>                the scheduled instant, if your scheduler\n                                provides it;',
  );
  expect(help).toContain('|none\n                                run once per period');
});
