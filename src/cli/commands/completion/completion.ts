// `semel completion`: a script for the shell, generated from the definitions of all commands.

import { type Commands, command } from '../../command.ts';
import { choice } from '../../flags.ts';
import { printJson, printRows } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { type CommandName, summaries } from '../summaries.ts';
import { bashScript } from './bash.ts';
import { fishScript } from './fish.ts';
import { type CommandSpec, ledgerWords, specOf } from './spec.ts';
import { wordsFor } from './words.ts';
import { zshScript } from './zsh.ts';

const scripts: Readonly<Record<string, (commands: readonly CommandSpec[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export default command({
  name: 'completion',
  takes: 'bash|zsh|fish',
  about: `Prints a script that completes commands, options and values, and the ledger's contracts and records.
Install it, then start a new shell:
  bash   echo 'source <(semel completion bash)' >> ~/.bashrc
  zsh    semel completion zsh > "\${fpath[1]}/_semel"
  fish   semel completion fish > ~/.config/fish/completions/semel.fish`,
  flags: {
    words: choice(ledgerWords, 'print words from the ledger, for the scripts'),
  },
  examples: ['source <(semel completion bash)', 'semel completion fish | source'],
  async run({ values, positionals, rest, commands }) {
    const [shell] = positionals;
    if (values.words !== undefined && positionals.length === 0) {
      const words = await wordsFor(values.words, lineOf(rest, values));
      if (values.json) printJson(words);
      else printRows(...words);
      return 0;
    }
    const script = shell === undefined || !Object.hasOwn(scripts, shell) ? undefined : scripts[shell];
    if (script === undefined || positionals.length !== 1)
      throw usageError('completion', 'expects the name of a shell', 'Write: semel completion bash|zsh|fish');
    const specs = await specsOf(commands);
    if (values.json) printJson(specs);
    else process.stdout.write(script(specs));
    return 0;
  },
});

/** The line being typed names its ledger; this command's own options come first. */
function lineOf(
  rest: readonly string[] | undefined,
  { store, namespace }: { readonly store: string | undefined; readonly namespace: string | undefined },
): string {
  const own = [
    store === undefined ? '' : ` --store ${store}`,
    namespace === undefined ? '' : ` --namespace ${namespace}`,
  ];
  return `${own.join('')} ${(rest ?? []).join(' ')}`;
}

async function specsOf(commands: Commands): Promise<readonly CommandSpec[]> {
  return Promise.all(
    Object.entries(commands).map(async ([name, load]) =>
      specOf((await load()).default, summaries[name as CommandName].line),
    ),
  );
}
