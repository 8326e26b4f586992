// What is done to each file of the build after rolldown has written it.

import type { Plugin } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';

/** A single character beyond Latin-1 makes V8 keep the whole text with two bytes for each. */
export const asciiOnly = changing('ascii-only', (code) =>
  code.replace(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`),
);

/** In what a bundler writes as an ES module there is no `require` for the modules of Node.js, and no `__filename`. */
export const readyForBundlers = changing('ready-for-bundlers', (code) =>
  code
    .replace(/\brequire\("((?:node:)?[a-z_/]+)"\)/g, 'process.getBuiltinModule("$1")')
    .replace(/\b__(?:file|dir)name\b/g, '(typeof $&==="undefined"?undefined:$&)'),
);

/** A stack then has lines to name, and Node.js, which shows the line of an uncaught error, shows one statement. */
export const oneStatementPerLine = changing('one-statement-per-line', (code) => {
  const starts: number[] = [];
  collectStarts(parseAst(code), starts);
  starts.sort((one, other) => one - other);
  return [0, ...starts].map((at, index) => code.slice(at, starts[index])).join('\n');
});

function changing(name: string, change: (code: string) => string): Plugin {
  return {
    name,
    generateBundle(_, files) {
      for (const file of Object.values(files)) if (file.type === 'chunk') file.code = change(file.code);
    },
  };
}

interface Node {
  readonly type: string;
  readonly start: number;
}

function collectStarts(node: object, starts: number[]): void {
  const { type } = node as Node;
  const isList =
    type === 'Program' || type === 'BlockStatement' || type === 'ClassBody' || type === 'StaticBlock';
  for (const [field, value] of Object.entries(node)) {
    if (typeof value !== 'object' || value === null) continue;
    if ((isList && field === 'body') || (type === 'SwitchCase' && field === 'consequent'))
      for (const { start } of value as Node[]) starts.push(start);
    collectStarts(value, starts);
  }
}
