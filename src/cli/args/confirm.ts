// Asks a person before something that cannot be taken back. Where there is no terminal nobody can be asked: then
// it has to be said beforehand.

import { usageError } from '../usage.ts';

export interface Asking {
  readonly command: string;
  /** `--yes` was given. */
  readonly yes: boolean | undefined;
  readonly input?: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output?: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

export async function confirmed(question: string, asking: Asking): Promise<boolean> {
  const { command, yes, input = process.stdin, output = process.stderr } = asking;
  if (yes) return true;
  if (!input.isTTY || !output.isTTY)
    throw usageError(command, 'there is no terminal to ask on', 'Say it beforehand: --yes.');
  // Loaded only now: most commands ask nobody.
  const lines = process.getBuiltinModule('node:readline/promises').createInterface({ input, output });
  try {
    // Ctrl-D and Ctrl-C end the question without an answer: that is a no.
    const gone = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(`${question} [y/N] `), gone]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
