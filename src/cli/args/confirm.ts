// Asks before something that cannot be undone. Without a terminal it needs --yes.

import { usageError } from '../usage.ts';

interface ConfirmOptions {
  readonly command: string;
  readonly yes: boolean | undefined;
  readonly input?: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output?: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

export async function confirm(question: string, options: ConfirmOptions): Promise<boolean> {
  const { command, yes, input = process.stdin, output = process.stderr } = options;
  if (yes) return true;
  if (!input.isTTY || !output.isTTY)
    throw usageError(command, 'there is no terminal to ask for confirmation', 'Add --yes.');
  // Loaded only now: most commands do not ask.
  const lines = process.getBuiltinModule('node:readline/promises').createInterface({ input, output });
  try {
    // Ctrl-D and Ctrl-C mean no.
    const gone = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(`${question} [y/N] `), gone]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
