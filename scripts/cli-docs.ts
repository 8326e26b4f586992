// Writes the reference of docs/reference/cli.md from the help of the commands, so that the two never differ.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../src/cli/commands/index.ts';
import { fileWidth } from '../src/cli/render/wrap.ts';

const path = join(import.meta.dirname, '../docs/reference/cli.md');
const marker = /<!-- From here on written by .*-->\n/;

/** The same in every help, so printed once. */
const shared = /Options of every command:\n(?: .*\n)+\n/;

/** The page as it should be. */
export async function referencePage(): Promise<string> {
  const page = readFileSync(path, 'utf8');
  const [line] = marker.exec(page) ?? [];
  if (line === undefined) throw new Error('docs/reference/cli.md has lost its marker');
  const helps = await Promise.all(
    Object.entries(commands).map(
      async ([name, load]) => [name, (await load()).default.help(fileWidth)] as const,
    ),
  );
  const [options = ''] = shared.exec(helps[0]?.[1] ?? '') ?? [];
  const sections = helps.map(([name, help]) => {
    if (!help.includes(options))
      throw new Error(`semel ${name}: its help lacks the options of every command`);
    return `\n### semel ${name}\n\n\`\`\`text\n${help.replace(options, '')}\`\`\`\n`;
  });
  const once = `\n\`\`\`text\n${options.trimEnd()}\n\`\`\`\n`;
  return page.slice(0, page.indexOf(line) + line.length) + once + sections.join('');
}

if (import.meta.main) writeFileSync(path, await referencePage());
