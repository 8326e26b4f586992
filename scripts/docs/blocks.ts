// Reads the fenced `ts` and `sh` blocks of a page, and joins those that continue each other into programs.
// Refuses what would let a block slip by unchecked: another name for these languages, a word it does not know,
// an exception without a reason.

export interface Block {
  page: string;
  /** Line of the opening fence. */
  line: number;
  language: 'ts' | 'sh';
  code: string[];
  continues: boolean;
  /** Why the block is not run; a `ts` block is type-checked all the same. */
  noRun?: string;
  /** Why the block is not even type-checked. */
  noCheck?: string;
}

/** Blocks that are one file: the first stands alone, the others carry `continues`. */
export type Program = [Block, ...Block[]];

export interface Complaint {
  page: string;
  line: number;
  message: string;
}

const otherNames: Record<string, Block['language']> = {
  typescript: 'ts',
  js: 'ts',
  javascript: 'ts',
  mjs: 'ts',
  bash: 'sh',
  shell: 'sh',
  console: 'sh',
  zsh: 'sh',
};

export function readBlocks(page: string, text: string): { blocks: Block[]; complaints: Complaint[] } {
  const blocks: Block[] = [];
  const complaints: Complaint[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const [, indent, fence, info] = /^(\s*)(`{3,}|~{3,})(.*)$/.exec(lines[at]!) ?? [];
    if (indent === undefined || fence === undefined || info === undefined) continue;
    const line = at + 1;
    const code: string[] = [];
    const isEnd = (text: string) =>
      text.trim().startsWith(fence) && text.trim().replaceAll(fence[0]!, '') === '';
    for (at++; at < lines.length && !isEnd(lines[at]!); at++) {
      code.push(lines[at]!.startsWith(indent) ? lines[at]!.slice(indent.length) : lines[at]!.trimStart());
    }
    const answer = readInfo(info.trim());
    if (typeof answer === 'string') complaints.push({ page, line, message: answer });
    else if (answer) blocks.push({ page, line, code, ...answer });
  }
  return { blocks, complaints };
}

type Info = Pick<Block, 'language' | 'continues' | 'noRun' | 'noCheck'>;

/** What the words after the fence ask for; a complaint when they are wrong; nothing for other languages. */
function readInfo(info: string): Info | string | undefined {
  const [language = '', ...rest] = info.split(/\s+/);
  const wanted = otherNames[language];
  if (wanted) return `write \`${wanted}\` instead of \`${language}\`, so that the block is run`;
  if (language !== 'ts' && language !== 'sh') return undefined;

  const read: Info = { language, continues: false };
  for (const [word, name, reason] of rest.join(' ').matchAll(/([\w-]+)(?:="([^"]*)")?|\S+/g)) {
    if (word === 'continues') read.continues = true;
    else if (name === 'no-run' && reason) read.noRun = reason;
    else if (name === 'no-check' && reason && language === 'ts') read.noCheck = reason;
    else if (name === 'no-run' || name === 'no-check') {
      return language === 'sh' && name === 'no-check'
        ? 'a `sh` block is only ever run: write no-run="the reason"'
        : `\`${name}\` needs a reason: ${name}="the reason"`;
    } else return `\`${word}\` is not known; a block takes continues, no-run="reason" or no-check="reason"`;
  }
  return read;
}

/** A block that continues belongs to the nearest block before it of the same page and language. */
export function joinPrograms(blocks: Block[]): { programs: Program[]; complaints: Complaint[] } {
  const programs: Program[] = [];
  const complaints: Complaint[] = [];
  for (const block of blocks) {
    if (!block.continues) {
      programs.push([block]);
      continue;
    }
    const program = programs.findLast(
      ([first]) => first.page === block.page && first.language === block.language,
    );
    if (program && !program.at(-1)!.noCheck) program.push(block);
    else {
      const what = program
        ? 'a block that is not checked'
        : `nothing: no \`${block.language}\` block stands before it`;
      complaints.push({ page: block.page, line: block.line, message: `continues ${what}` });
    }
  }
  return { programs, complaints };
}

/** The blocks of a program up to the first that is not run. */
export function runnable(program: Program): Block[] {
  const stop = program.findIndex((block) => block.noRun || block.noCheck);
  return stop === -1 ? program : program.slice(0, stop);
}

/** `// prints: text` lines: what a run must write, in this order. */
export function promisedOutput(blocks: Block[]): string[] {
  const lines = blocks.filter((block) => block.language === 'ts').flatMap((block) => block.code);
  return lines.flatMap((line) => /^\s*\/\/ prints: (.*\S)\s*$/.exec(line)?.[1] ?? []);
}

/** Line of the joined file → line of the page. Both count from 1. */
export function pageLine(blocks: Block[], joinedLine: number): number {
  let left = joinedLine;
  for (const block of blocks) {
    if (left <= block.code.length) return block.line + left;
    left -= block.code.length;
  }
  return blocks.at(-1)!.line;
}

export function join(blocks: Block[]): string {
  return blocks.map((block) => block.code.map((line) => `${line}\n`).join('')).join('');
}
