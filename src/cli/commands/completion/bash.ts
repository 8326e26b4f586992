// Completion for bash, from 3.2 on. Words of the ledger are never expanded: they were written by strangers.

import type { CommandSpec, Kind } from './spec.ts';

export function bashScript(commands: readonly CommandSpec[]): string {
  const names = commands.map(({ name }) => name);
  const values = commands.flatMap(({ name, flags }) =>
    flags.flatMap((flag) =>
      flag.value === undefined
        ? []
        : [{ patterns: forms(flag).map((form) => `'${name} ${form}'`), kind: flag.value }],
    ),
  );
  return `# semel completion for bash. Load it in ~/.bashrc: source <(semel completion bash)

_semel_choose() {
  local word
  for word in "$@"; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
  done
}

_semel_words() {
  local word
  while IFS= read -r word; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
  done < <(semel completion --words "$1" -- "$COMP_LINE" 2>/dev/null)
}

_semel_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do
    COMPREPLY+=("$file")
  done < <(compgen -f -- "$cur")
}

_semel_store() {
  compopt -o nospace 2>/dev/null
  _semel_choose sqlite:
}

_semel() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command=\${COMP_WORDS[1]}
  local at word nth=0
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _semel_choose ${names.join(' ')} help --help --version
    return
  fi
  # bash takes --flag=value and sqlite:path for three words each.
  [[ $prev == = ]] && prev=\${COMP_WORDS[COMP_CWORD - 2]}
  [[ $cur == = ]] && cur=
  [[ $cur == : ]] && prev=: cur=
  if [[ $prev == : ]]; then
    _semel_files
    return
  fi
  for ((at = 2; at < COMP_CWORD; at++)); do
    if [[ \${COMP_WORDS[at]} == -- ]]; then
      _semel_files
      return
    fi
  done
  case "$command $prev" in
${values.map(({ patterns, kind }) => `    ${patterns.join(' | ')}) ${action(kind)}; return ;;`).join('\n')}
  esac
  if [[ $cur == -* ]]; then
    case $command in
${commands.map(({ name, flags }) => `      ${name}) _semel_choose ${flags.flatMap(forms).join(' ')} ;;`).join('\n')}
    esac
    return
  fi
  for ((at = 2; at < COMP_CWORD; at++)); do
    word=\${COMP_WORDS[at]}
    case "$command $word" in
      ${values.flatMap(({ patterns }) => patterns).join(' | ')}) at=$((at + 1)) ;;
      *' '-*) ;;
      *) nth=$((nth + 1)) ;;
    esac
  done
  case "$command $nth" in
    'help 0') _semel_choose ${names.join(' ')} ;;
${commands
  .flatMap(({ name, positionals }) =>
    positionals.map((kind, nth) => `    '${name} ${nth}') ${action(kind)} ;;`),
  )
  .join('\n')}
  esac
}

complete -F _semel semel
`;
}

function forms({ name, short }: { readonly name: string; readonly short: string | undefined }): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

function action(kind: Kind): string {
  switch (kind.type) {
    case 'choices':
      return `_semel_choose ${kind.choices.join(' ')}`;
    case 'ledger':
      return `_semel_words ${kind.words}`;
    case 'file':
      return '_semel_files';
    case 'store':
      return '_semel_store';
    case 'free':
      return ':';
  }
}
