// The help of a command, wrapped between words. Examples are broken only as a shell reads them: they are there to be copied.

import type { Definition, Flag, Flags } from '../command.ts';
import { summaries } from '../commands/summaries.ts';
import { breakCommand, displayWidth, wrap, wrapParagraphs } from './wrap.ts';

type Shown = Pick<Definition<Flags>, 'name' | 'takes' | 'about' | 'flags' | 'examples'>;

/** `shared` are the options of every command. */
export function helpText(
  { name, takes, about, flags, examples }: Shown,
  shared: Flags,
  width: number,
): string {
  const lines = [
    ...wrap(`semel ${name}: ${summaries[name].line}`, width, '', '  '),
    '',
    ...usage(name, takes, width),
    ...(about === undefined ? [] : ['', ...wrapParagraphs(about, width)]),
    ...(Object.keys(flags).length === 0 ? [] : ['', ...optionRows(flags, width)]),
    '',
    'Options of every command:',
    ...optionRows(shared, width),
    '',
    examples.length === 1 ? 'Example:' : 'Examples:',
    ...examples.flatMap((example) => exampleLines(example, width)),
  ];
  return `${lines.join('\n')}\n`;
}

/** Other shell code than a plain command stays as it is. */
function exampleLines(example: string, width: number): readonly string[] {
  const [first = '', ...more] = example.startsWith('semel ')
    ? breakCommand(example, width, '  ', '  ')
    : [example];
  return [`  ${first}`, ...more];
}

/** Breaks between arguments, never inside `[--same a,b]`. */
function usage(name: string, takes: string, width: number): readonly string[] {
  const lines = [`Usage: semel ${name}`];
  const indent = ' '.repeat('Usage: semel '.length);
  for (const argument of takes.match(/\[[^\]]*\]\S*|\S+/g) ?? []) {
    const line = lines.at(-1) as string;
    if (displayWidth(line) + 1 + displayWidth(argument) > width) lines.push(`${indent}${argument}`);
    else lines[lines.length - 1] = `${line} ${argument}`;
  }
  return lines;
}

const maxNameWidth = 30;

function optionRows(flags: Flags, width: number): readonly string[] {
  const rows = Object.entries(flags).map(
    ([name, flag]) => [`  ${optionName(name, flag)}`, flag.help] as const,
  );
  // The names get at most half of a narrow terminal.
  const most = Math.min(maxNameWidth, Math.floor(width / 2) - 2);
  const column = Math.min(most, Math.max(...rows.map(([left]) => left.length))) + 2;
  const indent = ' '.repeat(column);
  return rows.flatMap(([left, help]) =>
    left.length + 2 > column
      ? [left, ...wrap(help, width, indent)]
      : wrap(help, width, left.padEnd(column), indent),
  );
}

function optionName(name: string, { short, value, choices, orDuration, type }: Flag): string {
  const words = orDuration ? [...(choices ?? []), '<duration>'] : choices;
  const shown = type === 'boolean' ? '' : ` ${words?.join('|') ?? value ?? '<text>'}`;
  return `${short === undefined ? '' : `-${short}, `}--${name}${shown}`;
}
