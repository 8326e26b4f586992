// The name under which a server's records are kept, where the operator chose none. Other commands, and other files under the
// same relative path, are other servers.

import { realpathSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { shortDigest } from '../../core/key/key.ts';

/** By its package or file, and a digest that tells two uses of one apart: other args may be another place. */
export function serverName(program: string, args: readonly string[], folder: string): string {
  const words = [program, ...args].filter((word) => !word.startsWith('-'));
  const isRunner = /^(npx|npm|pnpm|bunx|uvx|node|python3?|deno|bun|docker)$/.test(basename(words[0] ?? ''));
  const named = URL.canParse(program)
    ? new URL(program).hostname
    : basename((isRunner ? words[1] : words[0]) ?? '');
  const plain = named
    .replace(/@[^@]*$/, '')
    .replace(/\.(m|c)?[jt]s$/, '')
    .replace(/[^A-Za-z0-9_-]/g, '-');
  const places = [program, ...args].map((word) => withFolder(word, folder));
  return `${plain.slice(0, 20) || 'server'}-${shortDigest('server', JSON.stringify(places))}`;
}

function withFolder(word: string, folder: string): string {
  const [, option = '', path = ''] = /^(-[^=]*=)?(.*)$/s.exec(word) ?? [];
  return isRelativePath(path) ? option + resolve(folder, path) : word;
}

/** Judged by the word alone: a file that the server creates must not change its name. */
function isRelativePath(word: string): boolean {
  if (/^([/\\-]|\w+:)/.test(word)) return false;
  return /^\.\.?([/\\]|$)/.test(word) || /\.([mc]?[jt]sx?|py|rb|php|sh|pl|lua|jar|exe)$/i.test(word);
}

/** As the shell names it: `current` of a deployment stays the same from one release to the next. */
export function workingFolder(cwd: string = process.cwd(), shellCwd = process.env.PWD): string {
  try {
    return shellCwd !== undefined && realpathSync(shellCwd) === realpathSync(cwd) ? shellCwd : cwd;
  } catch {
    return cwd;
  }
}
