// Runs what the documentation shows: every fenced `ts` and `sh` block of README.md, docs/ and skills/, from the packed
// tarball, in an empty home. See CONTRIBUTING.md for the words a block may carry.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type Block,
  type Complaint,
  join,
  joinPrograms,
  type Program,
  pageLine,
  promisedOutput,
  readBlocks,
  runnable,
} from './docs/blocks.ts';
import { createProject, type Project } from './docs/project.ts';

const limitMs = 30_000;
const atOnce = 2;
const root = joinPath(import.meta.dirname, '..');

const { values: options, positionals } = parseArgs({
  options: { results: { type: 'string' } },
  allowPositionals: true,
});

const pages =
  positionals.length > 0
    ? positionals
    : ['README.md', ...globSync(['docs/**/*.md', 'skills/**/*.md'], { cwd: root }).sort()].filter((page) =>
        existsSync(joinPath(root, page)),
      );

const { blocks, programs, complaints } = readPages(pages);
if (programs.length > 0) {
  using project = createProject(root);
  complaints.push(...typeCheck(project, programs), ...(await runAll(project, programs)));
}
report();

function readPages(pages: string[]): { blocks: Block[]; programs: Program[]; complaints: Complaint[] } {
  const read = pages.map((page) => readBlocks(page, readFileSync(joinPath(root, page), 'utf8')));
  const blocks = read.flatMap((page) => page.blocks);
  const joined = joinPrograms(blocks);
  return {
    blocks,
    programs: joined.programs,
    complaints: [...read.flatMap((page) => page.complaints), ...joined.complaints],
  };
}

/** One run of tsc over all blocks: starting it costs more than checking them. */
function typeCheck(project: Project, programs: Program[]): Complaint[] {
  const checked = programs.filter(([first]) => first.language === 'ts' && !first.noCheck);
  if (checked.length === 0) return [];
  project.link(['@types/node', ...importedPackages(checked)]);
  const files = new Map(checked.map((program) => [`${nameOf(program)}/check.ts`, program]));
  for (const [file, program] of files) project.write(file, join(program));
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    types: ['node'],
    moduleDetection: 'force',
    // Node only strips the types of these blocks.
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    noEmit: true,
    // Our own declarations are read as a user's compiler reads them.
    skipLibCheck: false,
  };
  project.write('tsconfig.json', JSON.stringify({ compilerOptions, files: [...files.keys()] }));

  const tsc = spawnSync(joinPath(root, 'node_modules/.bin/tsc'), ['--pretty', 'false'], {
    cwd: project.folder,
    encoding: 'utf8',
  });
  const complaints: Complaint[] = [];
  for (const line of tsc.stdout.split('\n').filter(Boolean)) {
    const [, file = '', at, message = line] = /^(.+?)\((\d+),\d+\): (.*)$/.exec(line) ?? [];
    const program = files.get(file);
    if (program) complaints.push({ page: program[0].page, line: pageLine(program, Number(at)), message });
    else if (/^\s/.test(line) && complaints.length > 0) complaints.at(-1)!.message += `\n${line}`;
    else if (!file || file.startsWith('node_modules/semel/')) throw new Error(`tsc: ${line}`);
    // The rest are declarations of other packages, which we cannot fix.
  }
  return complaints;
}

async function runAll(project: Project, programs: Program[]): Promise<Complaint[]> {
  const waiting = programs.map((program) => ({ name: nameOf(program), blocks: runnable(program) }));
  const complaints: Complaint[] = [];
  const runWaiting = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const complaint = next.blocks.length > 0 ? await runOne(project, next.name, next.blocks) : undefined;
      if (complaint) complaints.push(complaint);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, runWaiting));
  return complaints;
}

async function runOne(project: Project, name: string, blocks: Block[]): Promise<Complaint | undefined> {
  const { page, line, language } = blocks[0]!;
  const file = `run.${language}`;
  project.write(`${name}/${file}`, join(blocks));
  const [command, args] =
    language === 'ts' ? [process.execPath, [file]] : ['bash', ['-euo', 'pipefail', file]];
  const { stdout, output, problem } = await project.run(name, command, args, limitMs);
  if (problem) {
    const failedAt = new RegExp(`${file}(?::| line |: line )(\\d+)`).exec(output)?.[1];
    return {
      page,
      line: failedAt ? pageLine(blocks, Number(failedAt)) : line,
      message: `${problem}\n${lastLines(output)}`,
    };
  }
  let from = 0;
  for (const text of promisedOutput(blocks)) {
    const at = stdout.indexOf(text, from);
    if (at === -1)
      return {
        page,
        line,
        message: `does not print \`${text}\` in its place; it printed:\n${lastLines(stdout)}`,
      };
    from = at + text.length;
  }
  return undefined;
}

function report(): void {
  for (const block of blocks.filter((block) => block.noRun || block.noCheck)) {
    const what = block.noCheck ? 'not checked' : 'not run';
    console.log(`${block.page}:${block.line} ${what}: ${block.noCheck ?? block.noRun}`);
  }
  for (const { page, line, message } of complaints) {
    console.log(`\n${page}:${line} ${message.trimEnd().replaceAll('\n', '\n  ')}`);
  }
  const ran = new Set(programs.flatMap(runnable));
  const typeCheckedOnly = blocks.filter(
    (block) => block.language === 'ts' && !block.noCheck && !ran.has(block),
  );
  const withReason = blocks.filter((block) => block.noRun || block.noCheck);
  console.log(
    `docs: ${ran.size} blocks run, ${typeCheckedOnly.length} type-checked only, ${withReason.length} with a reason`,
  );

  const failed = complaints.length;
  const passed = Math.max(0, ran.size + typeCheckedOnly.length - failed);
  if (options.results) writeFileSync(options.results, JSON.stringify({ passed, failed }));
  process.exitCode = failed === 0 ? 0 : 1;
}

function nameOf([first]: Program): string {
  return `${first.page.replace(/\.md$/, '').replaceAll(/[^\w]+/g, '-')}-${first.line}`;
}

/** Names of the packages that the blocks import, and of their types. */
function importedPackages(programs: Program[]): Set<string> {
  const found = new Set<string>();
  for (const [, name] of programs
    .map(join)
    .join('\n')
    .matchAll(/(?:from|import|import\()\s*['"]((?:@[\w.-]+\/)?[\w.-]+)/g)) {
    if (name!.startsWith('.') || name === 'semel' || name!.startsWith('node:')) continue;
    found.add(name!);
    found.add(`@types/${name!.replace('@', '').replace('/', '__')}`);
  }
  return found;
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-20).join('\n');
}
