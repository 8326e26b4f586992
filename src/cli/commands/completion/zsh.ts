// Completion for zsh.

import type { CommandSpec, FlagSpec, Kind } from './spec.ts';

export function zshScript(commands: readonly CommandSpec[]): string {
  return `#compdef semel
# semel completion for zsh. Install it: semel completion zsh > "\${fpath[1]}/_semel"

_semel_words() {
  local -a found
  found=(\${(f)"$(semel completion --words $1 -- "$BUFFER" 2>/dev/null)"})
  compadd -a found
}

_semel_store() {
  compset -P 'sqlite:' && _files || compadd -S '' 'sqlite:'
}

_semel_commands() {
  local -a all
  all=(
${commands.map(({ name, line }) => `    ${quoted(`${name}:${line}`)}`).join('\n')}
  )
  _describe -t commands command all
}

_semel() {
  local curcontext="$curcontext" state line
  typeset -A opt_args
  _arguments -C '(- *)'{-h,--help}'[all commands]' '(- *)'{-v,--version}'[the version]' '1:command:_semel_commands' '*::argument:->argument'
  [[ $state == argument ]] || return
  case $words[1] in
    help) _arguments '1:command:_semel_commands' ;;
${commands.map(branch).join('\n')}
  esac
}

if [[ $funcstack[1] == _semel ]]; then
  _semel "$@"
else
  compdef _semel semel
fi
`;
}

function branch({ name, flags, positionals }: CommandSpec): string {
  const lines = [
    ...flags.flatMap(optionSpecs),
    ...positionals.map((kind, nth) => quoted(`${nth + 1}:${titleOf(kind)}:${action(kind)}`)),
  ];
  return `    ${name})\n      _arguments \\\n${lines.map((line) => `        ${line}`).join(' \\\n')}\n      ;;`;
}

function optionSpecs({ name, short, help, value }: FlagSpec): readonly string[] {
  const forms = short === undefined ? [`--${name}`] : [`-${short}`, `--${name}`];
  const given = value === undefined ? '' : `:${titleOf(value)}:${action(value)}`;
  return forms.map((form) => quoted(`${form}[${escaped(help)}]${given}`));
}

function titleOf(kind: Kind): string {
  return kind.type === 'ledger' ? kind.words : kind.type === 'free' ? 'value' : kind.type;
}

function action(kind: Kind): string {
  switch (kind.type) {
    case 'choices':
      return `(${kind.choices.join(' ')})`;
    case 'ledger':
      return `_semel_words ${kind.words}`;
    case 'file':
      return '_files';
    case 'store':
      return '_semel_store';
    case 'free':
      return '';
  }
}

/** Inside the brackets of an option these end or divide the text. */
function escaped(text: string): string {
  return text.replaceAll(/[\\[\]:]/g, '\\$&');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
