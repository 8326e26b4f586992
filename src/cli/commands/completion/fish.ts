// Completion for fish.

import type { CommandSpec, FlagSpec, Kind } from './spec.ts';

export function fishScript(commands: readonly CommandSpec[]): string {
  const lines = commands.flatMap(({ name, line, flags, positionals }) => [
    '',
    `complete -c semel -n __fish_use_subcommand -a ${name} -d ${quoted(line)}`,
    ...flags.map((flag) => `complete -c semel -n ${inside(name)}${option(flag)}`),
    ...positionals.flatMap((kind) => {
      const words = wordsOf(kind);
      return words === '' ? [] : [`complete -c semel -n ${inside(name)}${words}`];
    }),
  ]);
  return `# semel completion for fish. Install it: semel completion fish > ~/.config/fish/completions/semel.fish

function __semel_words
    semel completion --words $argv[1] -- (commandline -p) 2>/dev/null
end

complete -c semel -f
complete -c semel -n __fish_use_subcommand -l help -s h -d 'all commands'
complete -c semel -n __fish_use_subcommand -l version -s v -d 'the version'
complete -c semel -n __fish_use_subcommand -a help -d 'the help of a command'
complete -c semel -n ${inside('help')} -a ${quoted(commands.map(({ name }) => name).join(' '))}
${lines.join('\n').trim()}
`;
}

function inside(name: string): string {
  return quoted(`__fish_seen_subcommand_from ${name}`);
}

function option({ name, short, help, value }: FlagSpec): string {
  const form = `${short === undefined ? '' : ` -s ${short}`} -l ${name}`;
  const takes = value === undefined ? '' : `${wordsOf(value) || ' -f'} -r`;
  return `${form}${takes} -d ${quoted(help)}`;
}

function wordsOf(kind: Kind): string {
  switch (kind.type) {
    case 'choices':
      return ` -a ${quoted(kind.choices.join(' '))}`;
    case 'ledger':
      return ` -a '(__semel_words ${kind.words})'`;
    case 'file':
      return ' -F';
    case 'store':
      return ' -a sqlite:';
    case 'free':
      return '';
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
