// Writes the reference of docs/reference/cli.md from the help of the commands, so that the two never differ.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../src/cli/commands/index.ts';
import { fileWidth } from '../src/cli/render/wrap.ts';

const path = join(import.meta.dirname, '../docs/reference/cli.md');
const marker = /<!-- From here on written by .*-->\n/;

/** The page as it should be. */
export async function referencePage(): Promise<string> {
  const page = readFileSync(path, 'utf8');
  const [line] = marker.exec(page) ?? [];
  if (line === undefined) throw new Error('docs/reference/cli.md has lost its marker');
  const sections = await Promise.all(
    Object.entries(commands).map(async ([name, load]) => {
      const { default: command } = await load();
      return `\n### semel ${name}\n\n\`\`\`text\n${command.help(fileWidth)}\`\`\`\n`;
    }),
  );
  return page.slice(0, page.indexOf(line) + line.length) + sections.join('');
}

if (import.meta.main) writeFileSync(path, await referencePage());
